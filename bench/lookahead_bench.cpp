// What guessing from a request's own words gains one stream, and costs where nothing repeats: the
// embedded model's held-out chats one by one, with guesses and without, by turns. Answers are
// compared first, to the id. Prints a line of JSON for each task and for all.

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "bench/ember_speaker.hpp"
#include "bench/spread.hpp"

namespace lethe {
namespace {

using namespace ember;

struct flags {
  std::filesystem::path model = "models/ember", data = "models/ember/eval";
  std::vector<std::string> tasks = {"list", "story", "recall", "system", "facts", "definition"};
  size_t limit = 20;
  uint32_t tokens = answer_tokens;
  float temperature = 0;
};

struct tally_of {
  uint64_t tokens = 0, guesses = 0, right = 0;
  double plain_ms = 0, ahead_ms = 0;
  std::vector<double> ratios;

  void add(const tally_of& o) {
    tokens += o.tokens, guesses += o.guesses, right += o.right;
    plain_ms += o.plain_ms, ahead_ms += o.ahead_ms;
    ratios.insert(ratios.end(), o.ratios.begin(), o.ratios.end());
  }
};

void print(const flags& f, const std::string& task, const tally_of& t) {
  if (t.tokens == 0) return;
  auto s = bench::spread_of(t.ratios);
  fmt::print(
      R"({{"what":"lookahead","model":"{}","temperature":{},"task":"{}","answers":{},"tokens":{},)"
      R"("tokens_a_step":{:.3f},"guessed":{},"right":{:.3f},"times_as_fast":{:.3f},)"
      R"("p10":{:.3f},"p90":{:.3f}}})"
      "\n",
      f.model.filename().string(), f.temperature, task, t.ratios.size(), t.tokens,
      double(t.tokens) / double(t.tokens - t.right), t.guesses,
      t.guesses ? double(t.right) / double(t.guesses) : 0, t.plain_ms / t.ahead_ms, s.p10, s.p90);
  std::fflush(stdout);
}

/// One chat, by turns: who begins changes.
tally_of compare(speaker& plain, speaker& ahead, const ids_list& prompt, const flags& f,
                 uint64_t seed) {
  auto ask = [&](speaker& by) { return by.answer_alone(prompt, f.tokens, f.temperature, seed); };
  const auto before = ahead.numbers();
  bool plain_first = seed % 2 == 0;
  auto first = ask(plain_first ? plain : ahead), second = ask(plain_first ? ahead : plain);
  if (first.said.ids != second.said.ids || first.said.stopped != second.said.stopped)
    throw std::runtime_error("guesses changed an answer: that is a defect");
  const auto& one_by_one = plain_first ? first : second;
  const auto& guessed = plain_first ? second : first;
  tally_of t;
  if (first.said.ids.size() < 2) return t;
  const auto n = ahead.numbers();
  t = {.tokens = n.tokens_decoded - before.tokens_decoded,
       .guesses = n.guesses - before.guesses,
       .right = n.guesses_right - before.guesses_right,
       .plain_ms = one_by_one.ms,
       .ahead_ms = guessed.ms};
  t.ratios.push_back(t.plain_ms / t.ahead_ms);
  return t;
}

void run(const flags& f) {
  auto model = speaker::opened(f.model);
  speaker plain(model, model->weights->weights(), {});
  speaker ahead(model, model->weights->weights(), {.looks_ahead = true});
  tally_of all;
  uint64_t seed = 0;
  for (const auto& task : f.tasks) {
    auto chats = examples_of(f.data / (task + ".jsonl"));
    chats.resize(std::min(chats.size(), f.limit));
    tally_of of_task;
    for (const auto& chat : chats)
      of_task.add(compare(plain, ahead, plain.prompt_of(chat.messages, true), f, seed++));
    print(f, task, of_task);
    all.add(of_task);
  }
  print(f, "all", all);
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) try {
  CLI::App app{"Guesses from a request's own words, against token by token", "lookahead_bench"};
  lethe::flags f;
  app.add_option("--model", f.model, "any with a chat template")->capture_default_str();
  app.add_option("--data", f.data, "where the tasks' chats are")->capture_default_str();
  app.add_option("--task", f.tasks, "of the data")->delimiter(',')->capture_default_str();
  app.add_option("--limit", f.limit, "chats of each task")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--max-tokens", f.tokens, "of an answer")
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
  app.add_option("--temperature", f.temperature)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  lethe::run(f);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "lookahead_bench: {}\n", e.what());
  return 1;
}
