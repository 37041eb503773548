#include "runtime/log/log_policy.hpp"

#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(LogPolicy, IsReadAsItIsWritten) {
  const log_policy p = sample_policy();
  auto read = log_policy::parse(p.text());
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(*read, p);
  EXPECT_EQ(*log_policy::from_entry(p.to_entry(3)), p);
  EXPECT_FALSE(log_policy::from_entry(sample(log_kind::release, 1, p.text())));
  EXPECT_TRUE(log_policy::parse("  " + p.text() + "\n"));
}

TEST(LogPolicy, IsRefusedWhenItIsCut) {
  const std::string text = sample_policy().text();
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(log_policy::parse(text.substr(0, size))) << size;
}

TEST(LogPolicy, EveryKeyIsThereOnce) {
  const std::string text = sample_policy().text();
  EXPECT_TRUE(refused(log_policy::parse(replaced(text, "{", R"({"extra":1,)")),
                      "policy: it has a key that"));
  EXPECT_TRUE(refused(log_policy::parse(replaced(text, "{", R"({"tick_ms":50,)")),
                      "policy: tick_ms is there twice"));
  EXPECT_TRUE(refused(log_policy::parse(replaced(text, "{", R"({"\u0074ick_ms":50,)")),
                      "policy: tick_ms is there twice"));
  EXPECT_TRUE(refused(log_policy::parse(replaced(text, R"("tick_ms":50,)", "")),
                      "policy: tick_ms is missing"));
  EXPECT_TRUE(refused(log_policy::parse(replaced(text, R"("name":"embedded",)", "")),
                      "policy: name is missing"));
  EXPECT_FALSE(log_policy::parse("[]"));
  EXPECT_FALSE(log_policy::parse("{}"));
}

TEST(LogPolicy, ValuesHaveBounds) {
  struct bound {
    uint32_t log_policy::*field;
    uint64_t least, most;
  };
  const bound bounds[] = {
      {&log_policy::candidates, 1, 3},
      {&log_policy::redraws, 0, 16},
      {&log_policy::chunk_bytes, 256, 8192},
      {&log_policy::tick_ms, 0, 60'000},
      {&log_policy::nodes_min, 1, 4096},
      {&log_policy::share_max_permille, 1, 1000},
      {&log_policy::growth_max_permille, 0, 1'000'000'000},
      {&log_policy::roster_age_max_s, 1, 1'000'000'000},
      {&log_policy::token_batch, 1, 10'000},
      {&log_policy::buyers_min, 0, 1'000'000'000},
  };
  for (const bound& b : bounds) {
    log_policy p = sample_policy();
    auto with = [&](uint64_t value) {
      p.*b.field = uint32_t(value);
      return bool(log_policy::parse(p.text()));
    };
    EXPECT_TRUE(with(b.least));
    EXPECT_TRUE(with(b.most));
    EXPECT_FALSE(with(b.most + 1)) << b.most;
    if (b.least > 0) {
      EXPECT_FALSE(with(b.least - 1)) << b.least;
    }
  }
}

TEST(LogPolicy, AnswersHaveAShapeOrNone) {
  log_policy p = sample_policy();
  EXPECT_EQ(p.shape().mode(), shape_mode::size_tick);
  p.tick_ms = 0;
  EXPECT_EQ(log_policy::parse(p.text())->shape().mode(), shape_mode::size);
  p.chunk_bytes = 0;
  EXPECT_EQ(log_policy::parse(p.text())->shape().mode(), shape_mode::off);
  p.tick_ms = 1;
  EXPECT_TRUE(refused(log_policy::parse(p.text()),
                      "policy: chunk_bytes must be 256 or more, or 0 like tick_ms: answers as they "
                      "come"));
}

TEST(LogPolicy, ListsAndTextsHaveBounds) {
  auto good = [](auto&& change) {
    log_policy p = sample_policy();
    change(p);
    return bool(log_policy::parse(p.text()));
  };
  using p = log_policy;
  EXPECT_FALSE(good([](p& x) { x.name = ""; }));
  EXPECT_FALSE(good([](p& x) { x.name = "Two Words"; }));
  EXPECT_TRUE(good([](p& x) { x.name = std::string(64, 'n'); }));
  EXPECT_FALSE(good([](p& x) { x.name = std::string(65, 'n'); }));
  EXPECT_FALSE(good([](p& x) { x.request_buckets = {}; }));
  EXPECT_FALSE(good([](p& x) { x.request_buckets = {4096, 4096}; }));
  EXPECT_FALSE(good([](p& x) { x.request_buckets = {0}; }));
  EXPECT_TRUE(good([](p& x) { x.request_buckets = {16u << 20}; }));
  EXPECT_FALSE(good([](p& x) { x.request_buckets = {(16u << 20) + 1}; }));
  auto buckets = [&](uint32_t count) {
    return good([&](p& x) {
      x.request_buckets.resize(count);
      for (uint32_t i = 0; i < count; ++i) x.request_buckets[i] = i + 1;
    });
  };
  EXPECT_TRUE(buckets(64));
  EXPECT_FALSE(buckets(65));
  EXPECT_FALSE(good([](p& x) { x.evidence_kinds = {}; }));
  EXPECT_FALSE(good([](p& x) { x.evidence_kinds = {"none", "none"}; }));
  EXPECT_FALSE(good([](p& x) { x.classes = {}; }));
  EXPECT_FALSE(good([](p& x) { x.classes = {{"a", 0}}; }));
  EXPECT_TRUE(good([](p& x) { x.token_challenge = bytes(1024); }));
  EXPECT_FALSE(good([](p& x) { x.token_challenge = bytes(1025); }));
  EXPECT_TRUE(good([](p& x) { x.token_challenge = {}; }));
  const std::string text = sample_policy().text();
  EXPECT_TRUE(log_policy::parse(text + std::string(16384 - text.size(), ' ')));
  EXPECT_FALSE(log_policy::parse(text + std::string(16385 - text.size(), ' ')));
  EXPECT_FALSE(log_policy::parse(replaced(text, R"("tick_ms":50)", R"("tick_ms":50.0)")));
  EXPECT_FALSE(log_policy::parse(replaced(text, R"("tick_ms":50)", R"("tick_ms":"50")")));
  EXPECT_FALSE(log_policy::parse(replaced(text, R"(["none")", R"([7)")));
}

TEST(LogEntry, IsReadAsItIsWritten) {
  for (log_kind kind : log_kinds) {
    const log_entry e = sample(kind, 0xfffffffe, "some payload");
    const bytes b = e.to_bytes();
    EXPECT_EQ(b.size(), 6u + 12);
    EXPECT_EQ(*log_entry::from_bytes(b), e);
    for (size_t size = 0; size < 6; ++size)
      EXPECT_FALSE(log_entry::from_bytes(bytes_view(b).first(size)));
    EXPECT_FALSE(log_entry::from_bytes(flipped(b, 0)));        // version
    EXPECT_FALSE(log_entry::from_bytes(flipped(b, 1, 0x40)));  // kind
  }
  EXPECT_FALSE(log_entry::from_bytes(text_bytes(std::string_view("\1\0\0\0\0\1", 6))));
  EXPECT_FALSE(log_entry::from_bytes(text_bytes(std::string_view("\1\6\0\0\0\1", 6))));
  EXPECT_TRUE(log_entry::from_bytes(text_bytes(std::string_view("\1\5\0\0\0\1", 6))));
  bytes large(65536);
  large[0] = large[1] = std::byte{1};
  EXPECT_FALSE(log_entry::from_bytes(large));
  large.pop_back();
  EXPECT_TRUE(log_entry::from_bytes(large));
}

TEST(LogEntry, EpochsEndRatherThanBeginAnew) {
  epoch_index epochs;
  epochs.take(log_kind::roster, UINT32_MAX);
  EXPECT_EQ(epochs.step(log_kind::roster, 0), epoch_step::repeated);
  EXPECT_EQ(epochs.step(log_kind::policy, 0), epoch_step::next);
}

}  // namespace
}  // namespace lethe
