// What each type of weights and of the KV cache costs in accuracy, against the same model in f32:
// next-token distributions on the embedded model's held-out chats, on those with outlier channels
// planted, and on published models against their published logits; then the embedded model's
// evaluation, answered greedily.

#include <fmt/format.h>
#include <simdjson.h>

#include <CLI/CLI.hpp>
#include <cstring>

#include "bench/ember_speaker.hpp"
#include "bench/next_tokens.hpp"
#include "bench/typed_models.hpp"
#include "kernels/pairs_row.hpp"

namespace lethe {
namespace {

using namespace accuracy;

struct flags {
  std::filesystem::path model = "models/ember", vectors;
  size_t chats = 200, limit = 200;
  uint32_t threads = 1;
};

checkpoint opened(const std::filesystem::path& path) {
  auto file = checkpoint::open(path);
  if (!file) throw std::runtime_error(file.why().text);
  return std::move(*file);
}

void say(const std::string& model, const std::string& type, const agreement& a) {
  fmt::print(stderr, "{:16} {:9} {:7} {:12.3e} {:12.3e} {:9.3f} % {:5} near ties\n", model, type,
             a.positions(), a.kl(), a.kl_p99(), 100 * a.top1(), a.near_ties());
  fmt::print(
      "{{\"what\":\"accuracy\",\"model\":\"{}\",\"type\":\"{}\",\"positions\":{},\"kl\":{:.4e},"
      "\"kl_p99\":{:.4e},\"top1\":{:.6f},\"near_ties\":{}}}\n",
      model, type, a.positions(), a.kl(), a.kl_p99(), a.top1(), a.near_ties());
  std::fflush(stdout);
}

void say_all(const std::string& model, const std::vector<candidate_run>& all) {
  for (const auto& c : all) say(model, c.name, c.judged);
  for (const auto& c : all) say(model + "-all", c.name, c.everywhere);
}

/// The held-out chats; what is judged are the assistant's tokens, the only ones it was taught.
std::vector<judged_text> held_out(const ember::speaker& words, const flags& f) {
  auto chats = ember::examples_of(f.model / "eval" / "chat.jsonl");
  chats.resize(std::min(chats.size(), f.chats));
  std::vector<judged_text> texts;
  for (const auto& chat : chats) texts.push_back(ember::judged(words, chat));
  return texts;
}

auto progress(std::string what, size_t all) {
  return [what = std::move(what), all](size_t done) {
    fmt::print(stderr, "\r{}: {} of {} texts{}", what, done, all, done == all ? "\n" : "");
  };
}

std::vector<candidate_run> every_type(typed_models& models, const checkpoint& from) {
  std::vector<candidate_run> all;
  for (dtype type : types_of(from)) all.push_back({name_of(type), &models.of(type)});
  return all;
}

/// Arithmetics that round, of this processor.
struct rounding_row {
  const char* name;
  const cpu_row* row;
};
std::vector<rounding_row> rounding_rows() {
  std::vector<rounding_row> all{{"bf16, keys, tensor", &amx_tensor},
                                {"bf16, keys, pairs", &pairs_row()}};
  std::erase_if(all, [](const rounding_row& r) { return !runs_here(*r.row); });
  return all;
}

/// Weights, keys and values of bf16 by them.
void add_rounding(typed_models& models, std::vector<candidate_run>& all) {
  for (const auto& [name, row] : rounding_rows())
    all.push_back({name, &models.of(dtype::bf16), kv_type::bf16, row});
}

/// Beside `q8_0`, whose products round activations, too.
constexpr const char* weights_alone = "q8_0, weights alone";

void on_chats(const std::vector<judged_text>& texts, typed_models& models, typed_models& outliers,
              const checkpoint& from) {
  typed_models rounded(from, rounded_to(dtype::q8_0));
  typed_models rounded_outliers(from, rounded_to(dtype::q8_0, planted_outliers()));
  auto all = every_type(models, from);
  all.push_back({weights_alone, &rounded.of(dtype::f32)});
  const auto& reference = models.of(dtype::f32);
  all.push_back({"kv_bf16", &reference, kv_type::bf16});
  all.push_back({"kv_int8", &reference, kv_type::int8});
  add_rounding(models, all);
  compare(reference, texts, all, progress("ember", texts.size()));
  say_all("ember", all);

  auto planted = every_type(outliers, from);
  planted.push_back({weights_alone, &rounded_outliers.of(dtype::f32)});
  add_rounding(outliers, planted);
  std::vector<candidate_run> same{{"f32", &outliers.of(dtype::f32)}};
  compare(reference, std::span(texts).first(1), same, [](size_t) {});
  if (same[0].everywhere.kl() > 1e-6) throw std::runtime_error("outliers changed the function");
  compare(outliers.of(dtype::f32), texts, planted, progress("ember-outliers", texts.size()));
  say_all("ember-outliers", planted);
}

std::vector<float> floats_in_npy(const std::filesystem::path& path) {
  std::string all = ember::read_file(path);
  uint16_t header = 0;
  if (all.size() < 10) throw std::runtime_error(path.string() + ": no array");
  std::memcpy(&header, all.data() + 8, 2);
  std::vector<float> values((all.size() - 10 - header) / sizeof(float));
  std::memcpy(values.data(), all.data() + 10 + header, values.size() * sizeof(float));
  return values;
}

/// Against the logits that were published with the model, f32, too.
void on_published(const std::filesystem::path& folder) {
  auto from = opened(folder);
  typed_models models(from), rounded(from, rounded_to(dtype::q8_0));
  auto all = every_type(models, from);
  if (fits(from, dtype::q8_0)) all.push_back({weights_alone, &rounded.of(dtype::f32)});
  add_rounding(models, all);
  simdjson::dom::parser parser;
  simdjson::dom::element root = parser.load((folder / "reference.json").string());
  for (auto p : root["prompts"].get_array()) {
    testing::prompt ids;
    for (uint64_t id : p["ids"].get_array()) ids.push_back(uint32_t(id));
    auto logits = floats_in_npy(folder / std::string(std::string_view(p["logits"])));
    size_t vocab = from.shape().vocab;
    for (auto& c : all) {
      auto got = testing::run(*c.weights, {ids}, {.kv = c.kv, .row = c.row})[0];
      for (size_t i = 0; i < ids.size(); ++i)
        c.judged.add(log_softmax(std::span(logits).subspan(i * vocab, vocab)), got[i]);
    }
  }
  for (const auto& c : all) say(folder.filename().string(), c.name, c.judged);
}

void evaluate(std::shared_ptr<const served_model> words, const std::string& type,
              const model_weights& weights, kv_type kv, const flags& f,
              const cpu_row* row = nullptr) {
  ember::speaker model(std::move(words), weights, {.row = row, .threads = f.threads, .kv = kv});
  size_t score = 0, of = 0;
  std::string tasks;
  for (const auto& [task, t] : ember::evaluation(model, f.model / "eval", f.limit)) {
    score += t.accepted, of += t.all;
    tasks += fmt::format("{}\"{}\":{}", tasks.empty() ? "" : ",", task, t.accepted);
  }
  fmt::print(stderr, "evaluation       {:9} {} of {}: {:.2f} %\n", type, score, of,
             100.0 * double(score) / double(of));
  fmt::print(
      "{{\"what\":\"evaluation\",\"type\":\"{}\",\"score\":{},\"of\":{},\"tasks\":{{{}}}}}\n", type,
      score, of, tasks);
  std::fflush(stdout);
}

void run(const flags& f) {
  auto from = opened(f.model);
  typed_models models(from), outliers(from, planted_outliers());
  auto words = ember::speaker::opened(f.model);
  auto texts = held_out(ember::speaker(words), f);
  fmt::print(stderr, "{:16} {:9} {:>7} {:>12} {:>12} {:>11}\n", "model", "type", "at", "kl",
             "kl p99", "top 1");
  on_chats(texts, models, outliers, from);
  if (!f.vectors.empty())
    for (const char* name : {"llama-tiny", "llama-tiny-f16", "qwen2-tiny", "qwen3-tiny"})
      on_published(f.vectors / "models" / name);
  if (f.limit == 0) return;
  for (dtype type : types_of(from)) evaluate(words, name_of(type), models.of(type), {}, f);
  evaluate(words, "kv_bf16", models.of(dtype::f32), kv_type::bf16, f);
  evaluate(words, "kv_int8", models.of(dtype::f32), kv_type::int8, f);
  for (const auto& [name, row] : rounding_rows())
    evaluate(words, name, models.of(dtype::bf16), kv_type::bf16, f, row);
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) try {
  CLI::App app{"What types of weights and of the KV cache cost in accuracy; JSON lines on stdout",
               "accuracy_bench"};
  lethe::flags f;
  app.add_option("--model", f.model, "the embedded model's folder")->capture_default_str();
  app.add_option("--vectors", f.vectors, "published test data; its models/ are measured, too");
  app.add_option("--chats", f.chats, "held-out chats for the distributions")->capture_default_str();
  app.add_option("--limit", f.limit, "chats per task of the evaluation; 0: none")
      ->capture_default_str();
  app.add_option("--threads", f.threads, "for the evaluation")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  lethe::run(f);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "accuracy_bench: {}\n", e.what());
  return 1;
}
