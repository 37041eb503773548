#pragma once

// The embedded model, asked its held-out chats: what it says to them, and what of it counts as good
// (models/ember/eval/README.md).

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/next_tokens.hpp"
#include "runtime/json/json_slice.hpp"
#include "runtime/serve/served_model.hpp"

namespace lethe::ember {

using ids_list = std::vector<uint32_t>;
inline constexpr uint32_t answer_tokens = 128;
inline constexpr size_t open_max = 256;

inline std::pmr::memory_resource* heap() { return std::pmr::get_default_resource(); }

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::string> lines_of(const std::filesystem::path& path) {
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
  explicit speaker(const std::filesystem::path& path) : speaker(opened(path)) {}
  explicit speaker(std::shared_ptr<const served_model> model)
      : speaker(model, model->weights->weights(), {}) {}
  /// With the words of a model and other weights of its shape, which outlive the speaker.
  speaker(std::shared_ptr<const served_model> model, const model_weights& weights,
          const engine_config& config)
      : model_(std::move(model)) {
    auto started = engine::start(weights, config);
    if (!started) throw std::runtime_error(started.why().text);
    engine_ = std::move(*started);
  }
  static std::shared_ptr<const served_model> opened(const std::filesystem::path& path) {
    auto model = served_model::open({.path = path});
    if (!model) throw std::runtime_error(model.why().text);
    if (!(*model)->chat) throw std::runtime_error(path.string() + ": it has no chat template");
    return *model;
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
    in_turn(prompts.size(), asked, [&](const request& r) { out.push_back(said_by(r)); });
    return out;
  }

  struct timed_answer {
    answer said;
    double ms = 0;  // from its first token to its last
  };
  /// With nobody beside it.
  timed_answer answer_alone(const ids_list& prompt, uint32_t tokens, float temperature,
                            uint64_t seed) {
    auto asked = ask({.prompt = prompt,
                      .max_tokens = tokens,
                      .how = {.temperature = temperature, .seed = seed},
                      .stop_ids = model_->stop_ids});
    finish(*asked);
    const auto& t = asked->times();
    return {said_by(*asked), double(t.last_ns - t.first_ns) / 1e6};
  }
  engine_numbers numbers() const { return engine_->numbers(); }

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
  static answer said_by(const request& r) {
    const auto& c = r.choice(0);
    return {{c.ids.begin(), c.ids.begin() + c.published}, c.reason == finish_reason::stop};
  }
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

inline std::vector<example> examples_of(const std::filesystem::path& file) {
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

inline bool refuses(const std::string& text, const std::vector<std::string>& refusals) {
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

/// Where the assistant's tokens of a chat lie in its ids, with their stop tokens: [first, end).
inline std::vector<std::pair<size_t, size_t>> spoken_in(const speaker& by, const example& chat) {
  std::vector<std::pair<size_t, size_t>> spans;
  std::span turns(chat.messages);
  for (size_t i = 0; i < turns.size(); ++i)
    if (check_json(turns[i])->find("role")->says("assistant"))
      spans.emplace_back(by.prompt_of(turns.first(i), true).size(),
                         by.prompt_of(turns.first(i + 1), false).size());
  return spans;
}

/// A chat whose assistant's tokens are judged, each where it is yet to come.
inline accuracy::judged_text judged(const speaker& by, const example& chat) {
  accuracy::judged_text text{by.prompt_of(chat.messages, false), {}};
  for (auto [first, end] : spoken_in(by, chat)) text.at.emplace_back(first - 1, end - 1);
  return text;
}

/// Each task's greedy answers, judged; at most `limit` chats of each.
inline std::vector<std::pair<std::string, tally>> evaluation(speaker& model,
                                                             const std::filesystem::path& data,
                                                             size_t limit) {
  auto refusals = lines_of(data / "refusals.txt");
  std::vector<std::pair<std::string, tally>> all;
  for (const char* task : {"arithmetic", "definition", "facts", "inside", "list", "missing",
                           "outside", "recall", "story", "system"}) {
    auto rows = examples_of(data / (std::string(task) + ".jsonl"));
    rows.resize(std::min(rows.size(), limit));
    std::vector<ids_list> prompts;
    for (const auto& e : rows) prompts.push_back(model.prompt_of(e.messages, true));
    auto answers = model.answers_to(prompts, 0);
    tally& t = all.emplace_back(task, tally{}).second;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::string text = model.text_of(answers[i].ids);
      t.add(rows[i], text, answers[i].stopped, refuses(text, refusals));
    }
  }
  return all;
}

}  // namespace lethe::ember
