// What the embedded model can do, on chats that it has never seen: models/ember/eval/README.md says
// what each task asks and what counts. With a draft: how many of the model's tokens it foresees.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "bench/ember_speaker.hpp"

namespace lethe {
namespace {

using namespace ember;
constexpr size_t drafted_per_task = 40;

/// Over the assistant's tokens with their stop tokens.
double perplexity(speaker& by, const std::vector<example>& chats) {
  std::vector<ids_list> texts;
  for (const auto& chat : chats) texts.push_back(by.prompt_of(chat.messages, false));
  auto found = by.opinions_on(texts);
  double loss = 0;
  size_t count = 0;
  for (size_t i = 0; i < texts.size(); ++i)
    for (auto [first, end] : spoken_in(by, chats[i]))
      for (size_t at = first; at < end; ++at, ++count) loss -= double(found[i].logprobs[at]);
  return std::exp(loss / double(count));
}

/// The share of the model's tokens that the draft would have got right. Greedy: both find the same
/// token likeliest. Sampled: over tokens drawn from p the mean of min(1, q / p), which is the sum
/// of min(p, q) over the vocabulary.
double acceptance(speaker& model, speaker& draft, const std::vector<ids_list>& prompts,
                  bool greedy) {
  auto answers = model.answers_to(prompts, greedy ? 0.0f : 1.0f);
  std::vector<ids_list> texts = prompts;
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i].insert(texts[i].end(), answers[i].ids.begin(), answers[i].ids.end());
    if (answers[i].stopped) texts[i].push_back(model.end());
  }
  auto p = model.opinions_on(texts), q = draft.opinions_on(texts);
  double right = 0;
  size_t count = 0;
  for (size_t i = 0; i < texts.size(); ++i)
    for (size_t at = prompts[i].size(); at < texts[i].size(); ++at, ++count)
      right += greedy ? double(p[i].likeliest[at] == q[i].likeliest[at])
                      : std::exp(std::min(0.0, double(q[i].logprobs[at] - p[i].logprobs[at])));
  return right / double(count);
}

struct flags {
  std::filesystem::path model = "models/ember", draft, data;
  size_t limit = 200, wrong = 0;
};

void run_task(speaker& model, const std::filesystem::path& file, const flags& f,
              const std::vector<std::string>& refusals, std::vector<ids_list>& drafted) {
  auto rows = examples_of(file);
  rows.resize(std::min(rows.size(), f.limit));
  std::string task = file.stem().string();
  if (task == "chat") {
    fmt::print("{:11} {:4} chats  perplexity {:.3f}\n", task, rows.size(), perplexity(model, rows));
    return;
  }
  std::vector<ids_list> prompts;
  for (const auto& e : rows) prompts.push_back(model.prompt_of(e.messages, true));
  auto answers = model.answers_to(prompts, 0);
  tally t;
  size_t shown = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string text = model.text_of(answers[i].ids);
    size_t before = t.accepted;
    t.add(rows[i], text, answers[i].stopped, refuses(text, refusals));
    if (t.accepted == before && shown++ < f.wrong)
      fmt::print("    asked  {}\n    right  {}\n    said   {}\n", rows[i].messages.back(),
                 rows[i].expect, text);
  }
  fmt::print(
      "{:11} {:4} chats  accepted {:5.1f} %  exact {:5.1f} %  refused {:5.1f} %  stopped {:5.1f} "
      "%\n",
      task, t.all, t.percent(t.accepted), t.percent(t.exact), t.percent(t.refused),
      t.percent(t.stopped));
  prompts.resize(std::min(prompts.size(), drafted_per_task));
  drafted.insert(drafted.end(), prompts.begin(), prompts.end());
}

void run(const flags& f) {
  auto data = f.data.empty() ? f.model / "eval" : f.data;
  auto refusals = lines_of(data / "refusals.txt");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(data))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  std::ranges::sort(files);
  speaker model(f.model);
  std::vector<ids_list> drafted;
  for (const auto& file : files) {
    run_task(model, file, f, refusals, drafted);
    std::fflush(stdout);
  }
  if (f.draft.empty()) return;
  speaker draft(f.draft);
  for (bool greedy : {true, false})
    fmt::print("draft       {:.1f} % of the model's tokens foreseen, {}\n",
               100 * acceptance(model, draft, drafted, greedy), greedy ? "greedy" : "sampled");
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) try {
  CLI::App app{"What the embedded model can do, on held-out chats", "ember_bench"};
  lethe::flags f;
  app.add_option("--model", f.model)->capture_default_str();
  app.add_option("--draft", f.draft, "a smaller model with the same tokenizer");
  app.add_option("--data", f.data, "default: eval/ in the model's folder");
  app.add_option("--limit", f.limit, "chats per task")->capture_default_str();
  app.add_option("--wrong", f.wrong, "show so many wrong answers per task");
  CLI11_PARSE(app, argc, argv);
  lethe::run(f);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "ember_bench: {}\n", e.what());
  return 1;
}
