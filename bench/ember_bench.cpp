// What the embedded model can do, on chats that it has never seen: models/ember/eval/README.md says
// what each task asks and what counts. With a draft: how many of the model's tokens it foresees.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <sstream>

#include "runtime/json/json_slice.hpp"
#include "runtime/serve/served_model.hpp"

namespace lethe {
namespace {

using ids_list = std::vector<uint32_t>;
constexpr uint32_t answer_tokens = 128;
constexpr size_t open_max = 256;
constexpr size_t drafted_per_task = 40;

std::pmr::memory_resource* heap() { return std::pmr::get_default_resource(); }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::istringstream text(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

struct example {
  std::vector<std::string> messages;  // each as JSON
  std::string expect, accept;
};

struct answer {
  ids_list ids;
  bool stopped = false;
};

/// How likely a model finds each token of a text, and which it finds likeliest.
struct opinion {
  std::vector<float> logprobs;
  ids_list likeliest;
};

/// A model and an engine of its own.
class speaker {
 public:
  explicit speaker(const std::filesystem::path& path) {
    auto opened = served_model::open({.path = path});
    if (!opened) throw std::runtime_error(opened.why().text);
    model_ = *opened;
    if (!model_->chat) throw std::runtime_error(path.string() + ": it has no chat template");
    auto started = engine::start(model_->weights->weights(), {});
    if (!started) throw std::runtime_error(started.why().text);
    engine_ = std::move(*started);
  }

  uint32_t end() const { return model_->stop_ids.front(); }
  std::string text_of(const ids_list& ids) const {
    return std::string(model_->words.decode(ids, true, heap()));
  }

  ids_list prompt_of(std::span<const std::string> messages, bool answer_follows) const {
    std::string list = fmt::format("[{}]", fmt::join(messages, ","));
    const auto& chat = *model_->chat;
    auto text = chat.program.render({.messages = list,
                                     .bos_token = chat.bos_token,
                                     .eos_token = chat.eos_token,
                                     .add_generation_prompt = answer_follows},
                                    heap());
    if (!text) throw std::runtime_error(text.why().text);
    auto ids = model_->words.encode(*text, {.add_special = false}, heap());
    if (!ids) throw std::runtime_error(ids.why().text);
    return {ids->begin(), ids->end()};
  }

  std::vector<answer> answers_to(const std::vector<ids_list>& prompts, float temperature) {
    std::vector<answer> out;
    auto asked = [&](size_t i) {
      return ask({.prompt = prompts[i],
                  .max_tokens = answer_tokens,
                  .how = {.temperature = temperature, .seed = i},
                  .stop_ids = model_->stop_ids});
    };
    in_turn(prompts.size(), asked, [&](const request& r) {
      const auto& c = r.choice(0);
      out.push_back(
          {{c.ids.begin(), c.ids.begin() + c.published}, c.reason == finish_reason::stop});
    });
    return out;
  }

  std::vector<opinion> opinions_on(const std::vector<ids_list>& texts) {
    std::vector<opinion> out;
    auto asked = [&](size_t i) {
      return ask({.prompt = texts[i],
                  .max_tokens = 1,
                  .how = {.temperature = 0, .want_logprob = true, .logprobs = 1},
                  .prompt_logprobs = true});
    };
    in_turn(texts.size(), asked, [&](const request& r) {
      opinion o{.logprobs = {r.prompt_logprobs().begin(), r.prompt_logprobs().end()}};
      for (const auto& top : r.prompt_top()) o.likeliest.push_back(top.id);
      out.push_back(std::move(o));
    });
    return out;
  }

 private:
  /// Many at once, but no more than an engine lets wait.
  template <class Ask, class Take>
  static void in_turn(size_t count, Ask&& ask_one, Take&& take) {
    std::deque<std::unique_ptr<request>> open;
    auto take_first = [&] {
      finish(*open.front());
      take(*open.front());
      open.pop_front();
    };
    for (size_t i = 0; i < count; ++i) {
      if (open.size() == open_max) take_first();
      open.push_back(ask_one(i));
    }
    while (!open.empty()) take_first();
  }
  std::unique_ptr<request> ask(const generate_ask& what) {
    auto made = request::make(size_t{16} << 20);
    if (!made) throw std::runtime_error(made.why().text);
    auto taken = (*made)->ask(what, model_->model.shape().vocab);
    if (!taken) throw std::runtime_error(taken.why().text);
    auto sent = engine_->submit(**made);
    if (!sent) throw std::runtime_error(sent.why().text);
    return std::move(*made);
  }
  static void finish(request& r) {
    for (uint32_t seen = r.events(); !r.gone(); seen = r.events()) r.wait(seen);
  }

  std::shared_ptr<const served_model> model_;
  std::unique_ptr<engine> engine_;
};

std::vector<example> examples_of(const std::filesystem::path& file) {
  std::vector<example> all;
  for (const auto& line : lines_of(file)) {
    auto row = check_json(line);
    if (!row) throw std::runtime_error(file.string() + ": " + row.why().text);
    example e;
    row->find("messages")->each([&](json_slice m) {
      return e.messages.emplace_back(m.raw()), true;
    });
    if (auto said = row->find("expect")->text(heap())) e.expect = *said;
    if (auto said = row->find("accept")->text(heap())) e.accept = *said;
    all.push_back(std::move(e));
  }
  return all;
}

bool refuses(const std::string& text, const std::vector<std::string>& refusals) {
  return std::ranges::any_of(refusals, [&](const std::string& r) {
    return text.starts_with(r) || text.find(" " + r) != text.npos;
  });
}

struct tally {
  size_t all = 0, accepted = 0, exact = 0, refused = 0, stopped = 0;

  void add(const example& e, const std::string& text, bool stop, bool refusal) {
    bool same = text == e.expect;
    ++all, exact += same, refused += refusal, stopped += stop;
    accepted += e.accept == "exact" ? same : e.accept == "refusal" ? refusal : stop && !refusal;
  }
  double percent(size_t n) const { return 100.0 * double(n) / double(all); }
};

/// Over the assistant's tokens with their stop tokens.
double perplexity(speaker& by, const std::vector<example>& chats) {
  std::vector<ids_list> texts;
  std::vector<std::vector<std::pair<size_t, size_t>>> spoken;
  for (const auto& chat : chats) {
    texts.push_back(by.prompt_of(chat.messages, false));
    auto& spans = spoken.emplace_back();
    for (size_t i = 0; i < chat.messages.size(); ++i) {
      auto role = check_json(chat.messages[i])->find("role");
      if (!role->says("assistant")) continue;
      std::span turns(chat.messages);
      spans.emplace_back(by.prompt_of(turns.first(i), true).size(),
                         by.prompt_of(turns.first(i + 1), false).size());
    }
  }
  auto found = by.opinions_on(texts);
  double loss = 0;
  size_t count = 0;
  for (size_t i = 0; i < texts.size(); ++i)
    for (auto [first, end] : spoken[i])
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
