// Measures masks of a JSON schema over a tokenizer's vocabulary, along an answer that it allows:
// microseconds per mask beside one pass over as many logits. The masks are first checked against
// the definition: every token, byte by byte. Prints one line of JSON per schema.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <random>

#include "kernels/cpu_row.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/grammar/grammar_run.hpp"
#include "runtime/grammar/schema.hpp"

namespace lethe {
namespace {

using steady = std::chrono::steady_clock;

double microseconds_since(steady::time_point begin) {
  return std::chrono::duration<double, std::micro>(steady::now() - begin).count();
}

struct percentiles {
  double median, p90, p99, most;
};

percentiles of(std::vector<double> times) {
  std::ranges::sort(times);
  auto at = [&](double p) { return times[size_t(p * double(times.size() - 1))]; };
  return {at(0.5), at(0.9), at(0.99), times.back()};
}

constexpr const char* schemas[][2] = {
    {"person", R"({"type":"object","properties":{
      "name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150},
      "email":{"type":"string","format":"email"},"id":{"type":"string","format":"uuid"},
      "bio":{"type":"string","maxLength":400},
      "tags":{"type":"array","items":{"type":"string"},"maxItems":8},
      "role":{"enum":["admin","user","guest"]},"born":{"type":"string","format":"date"},
      "friends":{"type":"array","items":{"$ref":"#"},"maxItems":3},
      "extra":{"type":"object","additionalProperties":{"type":"number"}}},
      "required":["name","age","email","id","bio","tags","role","born","friends"]})"},
    {"any object", R"({"type":"object"})"},
    {"pattern",
     R"({"type":"object","properties":{"code":{"type":"string","pattern":"^[a-z]{1,40}( [a-z]+)*$"},
      "note":{"type":"string"}},"required":["code","note"]})"},
};

bool allows(std::span<const uint64_t> mask, uint32_t id) { return mask[id / 64] >> id % 64 & 1; }

/// Every token by its definition.
void check_mask(grammar_run& run, const token_trie& words, std::span<const uint64_t> mask) {
  for (uint32_t id = 0; id < words.size(); ++id)
    check(allows(mask, id) == run.can_follow(0, words.bytes(id)));
}

/// Draws allowed tokens, mostly the long ones inside texts, until the answer ends.
struct walked {
  std::vector<double> times;
  size_t tokens = 0;
};

walked walk(const grammar& rules, const token_trie& words, uint32_t seed, bool checked) {
  std::pmr::monotonic_buffer_resource memory;
  grammar copy(&memory);
  copy.nodes = rules.nodes;
  copy.start = rules.start;
  copy.class_of = rules.class_of;
  copy.classes = rules.classes;
  grammar_run run(std::move(copy), words, 1, words.size(), &memory);
  std::mt19937 random(seed);
  walked w;
  for (; w.tokens < 300 && !run.must_end(0); ++w.tokens) {
    auto begin = steady::now();
    auto mask = run.allowed(0);
    w.times.push_back(microseconds_since(begin));
    check(!mask.empty());
    if (checked && w.tokens % 8 == 0) {
      std::vector<uint64_t> kept(mask.begin(), mask.end());
      check_mask(run, words, kept);
    }
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; id < words.size(); ++id)
      if (allows(mask, id)) ids.push_back(id);
    if (ids.empty()) break;
    // A text would go on for ever where one token in a thousand ends it.
    auto ends = std::ranges::find_if(
        ids, [&](uint32_t id) { return words.bytes(id).find('"') != std::string_view::npos; });
    bool end = ends != ids.end() && random() % 6 == 0;
    check(run.accept_token(0, end ? *ends : ids[random() % ids.size()]));
  }
  return w;
}

double pass_over_logits(uint32_t vocab) {
  std::vector<float> logits(vocab, 1), maxima(draw_blocks(vocab));
  std::vector<double> times;
  volatile float sink = 0;
  for (int i = 0; i < 100; ++i) {
    logits[size_t(i)] = float(i);
    auto begin = steady::now();
    best_cpu_row().draw.maxima(logits.data(), logits.size(), maxima.data());
    sink = sink + std::ranges::max(maxima);
    times.push_back(microseconds_since(begin));
  }
  return of(times).median;
}

int run(const std::string& path) {
  auto file = mapped_file::open(path);
  check(bool(file));
  auto words = tokenizer::from_json(as_text(file->bytes()));
  check(bool(words));
  auto begin = steady::now();
  token_trie trie(*words);
  double built = microseconds_since(begin);
  for (const auto& [name, text] : schemas) {
    std::pmr::monotonic_buffer_resource memory;
    begin = steady::now();
    auto rules = schema_grammar(std::string_view(text), &memory);
    double compiled = microseconds_since(begin);
    if (!rules) return fmt::print(stderr, "{}\n", rules.why().text), 1;
    std::vector<double> times;
    for (uint32_t seed = 0; seed < 40; ++seed) {
      auto w = walk(*rules, trie, seed, seed == 0);
      times.insert(times.end(), w.times.begin(), w.times.end());
    }
    auto p = of(times);
    fmt::print(
        "{{\"what\":\"mask\",\"schema\":\"{}\",\"vocab\":{},\"masks\":{},\"us_median\":{:.1f},"
        "\"us_p90\":{:.1f},\"us_p99\":{:.1f},\"us_most\":{:.1f},\"us_pass_over_logits\":{:.1f},"
        "\"us_compile\":{:.0f},\"us_trie\":{:.0f},\"nodes\":{}}}\n",
        name, trie.size(), times.size(), p.median, p.p90, p.p99, p.most,
        pass_over_logits(trie.size()), compiled, built, rules->nodes.size());
  }
  return 0;
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  CLI::App app("Microseconds per mask of allowed tokens");
  std::string path = "../shared/vectors/tokenizers/llama-bpe.hf/tokenizer.json";
  app.add_option("tokenizer", path, "a tokenizer.json")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return lethe::run(path);
}
