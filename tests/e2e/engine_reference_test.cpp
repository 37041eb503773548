// The published tiny models: every position's logits, 32 greedy tokens, for every cut, page size,
// chunk and company.

#include <simdjson.h>

#include <cmath>
#include <fstream>

#include "tests/e2e/engine_run.hpp"
#include "tests/unit/parallel_grid_run.hpp"

namespace lethe::e2e {
namespace {

struct reference {
  std::vector<uint32_t> prompt, greedy;
  std::vector<float> logits;  // [prompt][vocab]
};

std::vector<uint32_t> ids_in(simdjson::dom::element list) {
  std::vector<uint32_t> ids;
  for (auto v : list.get_array()) ids.push_back(uint32_t(uint64_t(v.get_uint64())));
  return ids;
}

std::vector<float> floats_in_npy(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(in)), {});
  uint16_t header = 0;
  std::memcpy(&header, all.data() + 8, 2);
  std::vector<float> values((all.size() - 10 - header) / 4);
  std::memcpy(values.data(), all.data() + 10 + header, values.size() * 4);
  return values;
}

std::vector<reference> references_of(const std::filesystem::path& folder) {
  simdjson::dom::parser parser;
  simdjson::dom::element root = parser.load((folder / "reference.json").string());
  std::vector<reference> all;
  for (auto p : root["prompts"].get_array())
    all.push_back({ids_in(p["ids"]), ids_in(p["greedy"]),
                   floats_in_npy(folder / std::string(std::string_view(p["logits"])))});
  return all;
}

/// Log-probabilities of all tokens at all prompt positions come out through prompt_top: compare
/// them with the reference's log-softmax, relative to the largest logit.
void expect_logits(const answered& got, const reference& want, uint32_t vocab, uint32_t tops,
                   const std::string& where) {
  for (size_t position = 0; position + 1 < want.prompt.size(); ++position) {
    const float* row = want.logits.data() + position * vocab;
    double largest = 0, most = *std::max_element(row, row + vocab), sum = 0;
    for (uint32_t i = 0; i < vocab; ++i) {
      largest = std::max(largest, std::fabs(double(row[i])));
      sum += std::exp(row[i] - most);
    }
    for (uint32_t i = 0; i < tops; ++i) {
      auto t = got.prompt_top[(position + 1) * tops + i];
      double logprob = row[t.id] - most - std::log(sum);
      ASSERT_NEAR(t.logprob, logprob, 1e-4 * largest) << where << " position " << position;
    }
  }
}

std::vector<wanted> asks_for(const std::vector<reference>& all, uint32_t tops) {
  std::vector<wanted> asks;
  for (const auto& r : all)
    asks.push_back({.prompt = r.prompt,
                    .max_tokens = 32,
                    .how = {.temperature = 0, .want_logprob = true, .logprobs = tops},
                    .prompt_logprobs = true});
  return asks;
}

constexpr const char* models[] = {"models/llama-tiny", "models/llama-tiny-f16",
                                  "models/llama-tiny-sharded", "models/qwen2-tiny",
                                  "models/qwen3-tiny"};

constexpr uint32_t pages[] = {1, 16, 64}, chunks[] = {1, 7, 64};
constexpr cut cuts[] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}};

std::string named(const std::filesystem::path& path, cut ranks, uint32_t page, uint32_t chunk) {
  return path.string() + " T" + std::to_string(ranks.tensor) + " P" +
         std::to_string(ranks.pipeline) + " page " + std::to_string(page) + " chunk " +
         std::to_string(chunk);
}

class Reference : public ::testing::TestWithParam<const char*> {};

TEST_P(Reference, HoldsForEveryCutPageChunkAndCompany) {
  auto root = vectors();
  if (root.empty()) GTEST_SKIP() << "no shared vectors";
  std::string name = GetParam();
  auto folder = root / name;
  auto all = references_of(folder);
  constexpr uint32_t tops = 20;
  auto asks = asks_for(all, tops);
  std::vector<std::filesystem::path> paths{folder,
                                           root / "gguf" / (folder.filename().string() + ".gguf")};
  for (const auto& path : paths) {
    auto m = open(path);
    std::vector<answered> first;
    for (cut ranks : cuts)
      for (uint32_t page : pages)
        for (uint32_t chunk : chunks) {
          auto e = start(m, small({.ranks = ranks, .page_tokens = page, .chunk_tokens = chunk}));
          std::string where = named(path, ranks, page, chunk);
          // Alone, then sixteen together.
          std::vector<answered> alone;
          for (const auto& a : asks) alone.push_back(run_all(*e, {a}, m.vocab())[0]);
          std::vector<wanted> crowd;
          for (uint32_t i = 0; i < 16; ++i) crowd.push_back(asks[i % asks.size()]);
          auto together = run_all(*e, crowd, m.vocab());
          for (size_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(alone[i].ids[0], all[i].greedy) << where;
            expect_logits(alone[i], all[i], m.vocab(), tops, where);
          }
          for (size_t i = 0; i < crowd.size(); ++i)
            EXPECT_EQ(together[i], alone[i % alone.size()]) << where << " in company";
          if (first.empty()) first = alone;
          EXPECT_EQ(alone, first) << where << ": not the bits of the first cut";
        }
  }
}

/// What the ranks compute, before any sampler: all logits of all positions.
void expect_all_logits(const lethe::testing::logit_rows& got, const reference& want, uint32_t vocab,
                       const std::string& where) {
  ASSERT_EQ(got.size() * vocab, want.logits.size()) << where;
  float largest = 0;
  for (float logit : want.logits) largest = std::max(largest, std::fabs(logit));
  for (size_t i = 0; i < want.logits.size(); ++i)
    ASSERT_NEAR(got[i / vocab][i % vocab], want.logits[i], 1e-4 * largest) << where << " at " << i;
}

TEST_P(Reference, EveryLogitOfEveryPosition) {
  auto root = vectors();
  if (root.empty()) GTEST_SKIP() << "no shared vectors";
  auto folder = root / GetParam();
  auto all = references_of(folder);
  std::vector<lethe::testing::prompt> prompts;
  for (const auto& r : all) prompts.push_back(r.prompt);
  for (const auto& path : {folder, root / "gguf" / (folder.filename().string() + ".gguf")}) {
    auto m = open(path);
    std::vector<lethe::testing::logit_rows> first;
    for (cut ranks : cuts)
      for (uint32_t page : pages)
        for (uint32_t chunk : chunks) {
          auto got = lethe::testing::run(m.weights(), prompts,
                                         {.ranks = ranks, .page_tokens = page, .chunk = chunk});
          std::string where = named(path, ranks, page, chunk);
          for (size_t i = 0; i < all.size(); ++i)
            expect_all_logits(got[i], all[i], m.vocab(), where);
          if (first.empty()) first = got;
          EXPECT_TRUE(got == first) << where << ": not the bits of the first cut";
        }
  }
}

INSTANTIATE_TEST_SUITE_P(Published, Reference, ::testing::ValuesIn(models), [](const auto& p) {
  std::string n = std::filesystem::path(p.param).filename();
  std::replace(n.begin(), n.end(), '-', '_');
  return n;
});

}  // namespace
}  // namespace lethe::e2e
