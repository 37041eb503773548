// A cluster's file against the policy: what a profile refuses is refused with line, promise and
// what to use instead.
#include <algorithm>
#include <map>

#include "runtime/config/check_policy.hpp"
#include "runtime/policy/policy.hpp"
#include "tests/unit/config_read.hpp"

namespace lethe {
namespace {

using namespace testing;
using schema::Profile;

constexpr Profile profiles[] = {Profile::STRICT, Profile::SESSION, Profile::LAB};

std::string profile_line(Profile p) {
  return fmt::format("profile = \"{}\"\n", policy::name_of(p));
}

std::string named(Profile p, std::string_view name) {
  return profile_line(p) + fmt::format("optimizations = [\"{}\"]\n", name) + model_line;
}

bool is_taken(policy::verdict v) {
  return v == policy::verdict::allowed || v == policy::verdict::guarded;
}

/// As an operator wants it: the line, the key, and if a promise would break, which.
void expect_said(const std::string& found, const policy::optimization& o, Profile p,
                 const std::string& where) {
  if (is_taken(o.in(p))) {
    EXPECT_EQ(found, "") << o.name;
    return;
  }
  EXPECT_TRUE(found.starts_with(where)) << found;
  EXPECT_NE(found.find("use instead: " + std::string(o.instead)), found.npos) << found;
  if (o.in(p) == policy::verdict::refused)
    EXPECT_NE(found.find("it would break " + policy::promises_text(o.breaks)), found.npos) << found;
  else
    EXPECT_NE(found.find("is not built"), found.npos) << found;
}

TEST(ConfigPolicy, EachRowByItsNameInEachProfile) {
  for (const auto& o : policy::table())
    for (auto p : profiles)
      expect_said(problems(check(named(p, o.name))), o, p,
                  fmt::format("c.toml:2: optimizations[0]: {} ", o.name));
}

const std::string gateway =
    "[gateway]\nlisten = \"127.0.0.1:0\"\nfolder = \"g\"\nissuer = \"http://127.0.0.1:1\"\n"
    "issuer_secret = \"s\"\n";

/// What a file says to have a row by its key, from line 4 on.
const std::map<std::string, std::pair<std::string, int>> by_key = {
    {"plain-api", {"[listen]\napi = \"127.0.0.1:0\"\n", 5}},
    {"full-traces", {"[trace]\nmode = \"all\"\n", 5}},
    {"plain-streaming", {gateway + "[shape]\nmode = \"off\"\n", 10}},
    {"equal-chunks", {gateway + "[shape]\nmode = \"size\"\n", 10}},
    {"paced-answers", {gateway + "[shape]\nmode = \"size_tick\"\n", 10}},
    {"two-candidates", {gateway + "candidates = 2\n", 9}},
    {"load-scaling", {"[scaling]\nmost = 2\n", 5}},
    {"kv-quantization", {"[batching]\nkv = \"int8\"\n", 5}},
    {"weight-quantization", {"quantize = \"q8_0\"\n", 4}},
    {"model-parallelism", {"[engines]\ntensor = 2\n", 5}},
    {"clear-links", {"[engines]\nlinks = \"clear\"\n", 5}},
    {"tensor-arithmetic",
     {"[engines]\narithmetic = \"tensor\"\n[[hosts]]\nname = \"a\"\ndevices = [\"cuda:0\"]\n"
      "device_memory = \"4 GiB\"\n",
      5}}};

TEST(ConfigPolicy, EachRowByItsKeyInEachProfile) {
  for (const auto& o : policy::table()) {
    EXPECT_EQ(by_key.contains(std::string(o.name)), o.how == policy::had::by_key) << o.name;
    if (o.how != policy::had::by_key) continue;
    const auto& [text, line] = by_key.at(std::string(o.name));
    auto key = std::ranges::find(policy_keys(), o.name, &policy_key::optimization);
    ASSERT_NE(key, policy_keys().end()) << o.name;
    for (auto p : profiles)
      expect_said(problems(check(profile_line(p) + model_line + text)), o, p,
                  fmt::format("c.toml:{}: {}: {} ", line, key->key, o.name));
  }
  EXPECT_EQ(by_key.size(), policy_keys().size());
}

// What has no default asks for nothing that its profile refuses, and what asks is seen to ask.
TEST(ConfigPolicy, AKeyAsksWhereItIsSetAndNowhereElse) {
  for (const auto& k : policy_keys()) {
    auto of = [](const std::string& text) { return check(profile_line(Profile::LAB) + text); };
    auto without = of(model_line + gateway),
         with = of(model_line + by_key.at(std::string(k.optimization)).first);
    EXPECT_TRUE(k.asks(with.config.get())) << k.optimization;
    EXPECT_EQ(k.asks(without.config.get()), k.optimization == "paced-answers") << k.optimization;
  }
}

TEST(ConfigPolicy, WhatIsAlwaysOnIsANote) {
  auto c = check(named(Profile::STRICT, "chunked-prefill"));
  ASSERT_EQ(c.layout.notes.size(), 1u);
  EXPECT_EQ(c.layout.notes[0], "chunked-prefill is always on");
  c = check(named(Profile::STRICT, "paging"));
  ASSERT_EQ(c.layout.notes.size(), 1u);
  EXPECT_TRUE(c.layout.notes[0].starts_with("paged-kv is always on: a page has one owner"));
  c = check(named(Profile::LAB, "kv-quantization"));
  ASSERT_EQ(c.layout.notes.size(), 1u);
  EXPECT_EQ(c.layout.notes[0],
            "kv-quantization comes with batching.kv = \"int8\"; its name alone changes nothing");
  c = check(named(Profile::LAB, "radix-cache"));
  ASSERT_EQ(c.layout.notes.size(), 1u);
  EXPECT_EQ(c.layout.notes[0], "prefix-cache is on");
}

TEST(ConfigPolicy, OnlyWhatIsNamedIsWanted) {
  auto c = check("profile = \"lab\"\noptimizations = [\"radix-cache\", \"chunked-prefill\"]\n" +
                 model_line);
  auto names = c.config.get().getOptimizations();
  EXPECT_TRUE(wants(names, "prefix-cache"));
  EXPECT_FALSE(wants(names, "priority"));
  EXPECT_FALSE(wants(check(model_line).config.get().getOptimizations(), "prefix-cache"));
}

TEST(ConfigPolicy, AllThatIsWrongIsSaidAtOnce) {
  refuses(
      "optimizations = [\"priority\", \"disk_kv\", \"disk-kv\",\n \"ssd-kv\", \"paging\", "
      "\"paged-kv\"]\n" +
          model_line + "[listen]\napi = \"127.0.0.1:0\"\n[health]\nheartbeat_ms = 600\n",
      {"c.toml:1: optimizations[0]: priority is refused by profile \"strict\"",
       "c.toml:1: optimizations[1]: there is no optimization \"disk_kv\"; did you mean disk-kv?",
       "c.toml:1: optimizations[2]: disk-kv is refused",
       "c.toml:2: optimizations[3]: disk-kv is refused",
       "c.toml:2: optimizations[5]: paged-kv is there before", "listen.api: plain-api is refused",
       "health.lost_after_ms"});
}

TEST(ConfigPolicy, AServiceStartsNoEngine) {
  std::string relay = "[relay]\nlisten = \"127.0.0.1:0\"\ngateway = \"http://127.0.0.1:1/\"\n";
  EXPECT_EQ(problems(check(relay)), "");
  refuses("optimizations = [\"chunked-prefill\"]\n" + relay,
          {"c.toml:1: optimizations: are an engine's"});
  refuses("optimizations = [\"content-logging\"]\n" + relay,
          {"content-logging is refused by profile \"strict\""});
}

}  // namespace
}  // namespace lethe
