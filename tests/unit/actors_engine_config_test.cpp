// What an engine is told to do by names, and by whose profile: a spec reaches it over the wire, and
// it takes from it only what the policy would have taken from a file.
#include <capnp/message.h>
#include <gtest/gtest.h>

#include "actors/cluster/open_engine.hpp"
#include "kernels/pairs_row.hpp"

namespace lethe {
namespace {

engine_config told(schema::Profile profile, std::initializer_list<const char*> names) {
  capnp::MallocMessageBuilder message;
  auto spec = message.initRoot<schema::EngineSpec>();
  spec.setProfile(profile);
  auto list = spec.initOptimizations(uint32_t(names.size()));
  uint32_t i = 0;
  for (const char* name : names) list.set(i++, name);
  auto made = config_of(spec);
  EXPECT_TRUE(made);
  return made ? *made : engine_config{};
}

TEST(EngineConfig, LooksAheadAndKeepsPrefixesWhereALabAsks) {
  EXPECT_FALSE(told(schema::Profile::LAB, {}).looks_ahead);
  EXPECT_FALSE(told(schema::Profile::LAB, {"prefix-cache"}).looks_ahead);
  EXPECT_FALSE(told(schema::Profile::LAB, {"request-lookahead"}).keeps_prefixes);
  auto both = told(schema::Profile::LAB, {"prompt-lookup", "radix-cache"});
  EXPECT_TRUE(both.looks_ahead);
  EXPECT_TRUE(both.keeps_prefixes);
}

TEST(EngineConfig, NeitherWhateverTheSpecOfAnotherProfileSays) {
  for (auto profile : {schema::Profile::STRICT, schema::Profile::SESSION}) {
    auto c = told(profile, {"request-lookahead", "prefix-cache"});
    EXPECT_FALSE(c.looks_ahead);
    EXPECT_FALSE(c.keeps_prefixes);
  }
}

TEST(EngineConfig, TakesKernelsByTheArithmeticAskedForOrRefuses) {
  capnp::MallocMessageBuilder message;
  auto spec = message.initRoot<schema::EngineSpec>();
  auto asked = [&](schema::Arithmetic how) {
    spec.initEngines().setArithmetic(how);
    return config_of(spec);
  };
  EXPECT_EQ(asked(schema::Arithmetic::EXACT)->row, nullptr);
  EXPECT_EQ(asked(schema::Arithmetic::TENSOR)->row, &amx_tensor);
  EXPECT_EQ(asked(schema::Arithmetic::PAIRS)->row, &pairs_row());
  auto newer = asked(schema::Arithmetic(3));
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.why().text.find("engines.arithmetic 3: this program knows none"),
            std::string::npos);
}

}  // namespace
}  // namespace lethe
