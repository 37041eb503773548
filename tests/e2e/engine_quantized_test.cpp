// GGUF files of every block type, pure and mixed as in Q4_K_M, against the double-precision
// transformer on the numbers that their blocks say.

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/model/convert.hpp"
#include "tests/e2e/engine_run.hpp"
#include "tests/e2e/quantized_model.hpp"
#include "tests/e2e/random_model.hpp"

namespace lethe::e2e {
namespace {

/// As published Q4_K_M files choose: more bits where errors cost most, in some of the layers.
dtype q4_k_m(std::string_view name) {
  bool dear = name == "head" || name == "layers.0.v" || name == "layers.0.down";
  return dear ? dtype::q6_k : dtype::q4_k;
}

/// A type each, floats among them.
dtype motley(std::string_view name) {
  constexpr dtype types[] = {dtype::q5_k, dtype::q8_0, dtype::bf16, dtype::q4_1,
                             dtype::q5_0, dtype::f16,  dtype::q6_k, dtype::q5_1,
                             dtype::q4_0, dtype::q4_k, dtype::f32};
  size_t sum = 0;
  for (char c : name) sum += uint8_t(c);
  return types[sum % std::size(types)];
}

struct quantized_case {
  const char* name;
  std::optional<dtype> pure;  // written by the converter
  dtype (*mixed)(std::string_view) = nullptr;
  const char* family = "llama";
  bool tied = false;

  type_rule rule() const {
    if (mixed) return mixed;
    return [type = *pure](std::string_view) { return type; };
  }
};

const quantized_case cases[] = {
    {"f16", dtype::f16},
    {"bf16", dtype::bf16},
    {"q8_0", dtype::q8_0},
    {"q4_0", dtype::q4_0},
    {"q4_1", dtype::q4_1},
    {"q5_0", dtype::q5_0},
    {"q5_1", dtype::q5_1},
    {"q4_k", dtype::q4_k},
    {"q5_k", dtype::q5_k},
    {"q6_k", dtype::q6_k},
    {"q6_k_tied_qwen2", dtype::q6_k, nullptr, "qwen2", true},
    {"q5_0_tied_qwen3", dtype::q5_0, nullptr, "qwen3", true},
    {"q4_k_m", {}, q4_k_m},
    {"motley", {}, motley},
};

class Quantized : public testing::TestWithParam<quantized_case> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("lethe-quantized-" + std::to_string(getpid()) + "-" + GetParam().name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The file at gguf(), and what it says. The K of o is one block of 256, which no cut divides;
  /// that of down is two.
  oracle::model write() {
    const auto& c = GetParam();
    oracle::recipe recipe{.family = c.family,
                          .hidden = 256,
                          .ffn = 512,
                          .tied = c.tied,
                          .qkv_bias = std::string(c.family) == "qwen2",
                          .qk_norm = std::string(c.family) == "qwen3",
                          .seed = 21};
    oracle::folder_writer writer(recipe, folder_);
    auto truth = writer.write();
    writer.write_tokenizer();
    auto from = checkpoint::open(folder_);
    if (!from) throw std::runtime_error(from.why().text);
    teach_all(truth, *from, c.rule());
    if (c.mixed) {
      write_mixed(*from, gguf(), c.rule());
    } else {
      auto report = convert_to_gguf(folder_, gguf(), {.type = *c.pure});
      if (!report) throw std::runtime_error(report.why().text);
      EXPECT_TRUE(report->kept.empty());
    }
    return truth;
  }
  std::filesystem::path gguf() const { return folder_ / "x.gguf"; }

  std::filesystem::path folder_;
};

std::vector<uint32_t> prompt_for(uint32_t vocab) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 30; ++i) ids.push_back((i * 37 + 11) % vocab);
  return ids;
}

/// The same bits from every cut.
answered answer_of(const opened& m, const wanted& ask) {
  std::optional<answered> first;
  for (cut c : {cut{1, 1}, cut{2, 1}, cut{1, 2}, cut{2, 2}}) {
    auto e = start(m, small({.ranks = c, .page_tokens = 16, .chunk_tokens = 13}));
    auto got = run_all(*e, {ask}, m.vocab())[0];
    if (!first) first = got;
    EXPECT_EQ(got, *first) << "T" << c.tensor << " P" << c.pipeline
                           << ": not the bits of the first cut";
  }
  return *first;
}

struct deviation {
  double largest = 0, rms = 0;  // relative to the largest logit
  uint32_t exact = 0;           // positions where all are within float's rounding
};

deviation compare(const answered& got, const oracle::rows& want, uint32_t tops) {
  deviation found;
  for (size_t position = 0; position + 1 < want.size(); ++position) {
    const auto& row = want[position];
    double most = *std::max_element(row.begin(), row.end()), sum = 0, scale = 0, largest = 0;
    for (double v : row) sum += std::exp(v - most), scale = std::max(scale, std::fabs(v));
    for (uint32_t i = 0; i < tops; ++i) {
      auto t = got.prompt_top[(position + 1) * tops + i];
      double off = (t.logprob - (row[t.id] - most - std::log(sum))) / scale;
      largest = std::max(largest, std::fabs(off));
      found.rms += off * off / double(tops * (want.size() - 1));
    }
    found.largest = std::max(found.largest, largest);
    found.exact += largest < 1e-5;
  }
  found.rms = std::sqrt(found.rms);
  return found;
}

TEST_P(Quantized, AgreesWithTheOracleOnWhatTheBlocksSay) {
  auto truth = write();
  auto m = open(gguf());
  auto prompt = prompt_for(truth.vocab);
  constexpr uint32_t tops = 20;
  auto got = answer_of(m, {.prompt = prompt,
                           .max_tokens = 6,
                           .how = {.temperature = 0, .want_logprob = true, .logprobs = tops},
                           .prompt_logprobs = true});
  auto off = compare(got, oracle::logits(truth, prompt), tops);
  RecordProperty("largest", std::to_string(off.largest));
  RecordProperty("exact", std::to_string(off.exact));
  // An activation that lies just between two of its eight-bit steps may become the one in float and
  // the other in double. From there on that position, and what attends to it, is off by parts of a
  // percent; all positions before agree as floats do. A wrong scale or nibble spares no position.
  if (truth.eight_bit.empty()) {
    EXPECT_EQ(off.exact, prompt.size() - 1);
  } else {
    EXPECT_GE(off.exact, 6u);
    EXPECT_LT(off.largest, 0.03);
    EXPECT_LT(off.rms, 0.005);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Quantized, testing::ValuesIn(cases),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace lethe::e2e
