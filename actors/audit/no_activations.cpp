#include "actors/audit/no_activations.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <thread>

#include "runtime/serve/served_model.hpp"

namespace lethe::audit {

namespace {

constexpr std::string_view messages =
    R"([{"role":"user","content":"My dog is called Qwaxolibrunt. What is my dog called?"}])";
constexpr size_t window = 16, stride = 192, most_of_a_kind = 4000;
constexpr size_t windows_min = 100;
/// An engine may have ended an answer before anybody has looked: then it is asked again.
constexpr int calls_max = 12;

std::string body(const std::string& more) {
  return fmt::format(R"({{"model":"{}","messages":{},"temperature":0,"ignore_eos":true{}}})",
                     model_name, messages, more);
}

/// Windows of four numbers that are nowhere by chance.
class windows {
 public:
  void take(const std::string& form, bytes_view bytes) {
    auto& of = found_[form];
    for (size_t at = 0; at + window <= bytes.size() && of.size() < most_of_a_kind; at += stride) {
      std::string part(as_text(bytes.subspan(at, window)));
      if (std::set<char>(part.begin(), part.end()).size() >= 10) of.insert(std::move(part));
    }
  }
  size_t count(const std::string& form) const {
    auto of = found_.find(form);
    return of == found_.end() ? 0 : of->second.size();
  }
  std::vector<needle> needles() const {
    std::vector<needle> all;
    for (const auto& [form, parts] : found_)
      for (const auto& part : parts) all.push_back({form, part});
    return all;
  }
  void drop(const needle& n) { found_[n.form].erase(n.bytes); }

 private:
  std::map<std::string, std::set<std::string>> found_;
};

result<std::unique_ptr<request>> asked(engine& e, const served_model& m, uint32_t tokens) {
  auto rendered = m.chat->program.render({.messages = messages,
                                          .bos_token = m.chat->bos_token,
                                          .eos_token = m.chat->eos_token,
                                          .add_generation_prompt = true},
                                         std::pmr::get_default_resource());
  if (!rendered) return rendered.why();
  auto ids = m.words.encode(*rendered, {.add_special = false}, std::pmr::get_default_resource());
  if (!ids) return ids.why();
  auto made = request::make(size_t{64} << 20);
  if (!made) return made.why();
  auto good = (*made)->ask({.prompt = *ids, .max_tokens = tokens, .how = {.temperature = 0}},
                           m.weights->weights().shape.vocab);
  if (!good) return good.why();
  if (auto sent = e.submit(**made); !sent) return sent.why();
  return made;
}

/// What is in the pages and buffers of an engine while it answers.
result<void> look(engine& e, const served_model& m, windows& all) {
  auto r = asked(e, m, 120);
  if (!r) return r.why();
  uint32_t seen = 0;
  while (!(*r)->gone()) {
    if (const uint32_t now = (*r)->choice(0).published; now != std::exchange(seen, now)) {
      all.take("logits and ids of a step", e.step_bytes());
      all.take("hidden rows of a step", e.ranks().rank(0).scratch());
      for (uint32_t p = 0; now > 1 && p < e.numbers().pages; ++p)
        for (bytes_view piece : e.ranks().rank(0).page(p)) all.take("keys and values", piece);
    }
    std::this_thread::yield();
  }
  (*r)->forget();
  return {};
}

/// What an engine in this process computes of the request.
result<windows> computed(const std::filesystem::path& model) {
  auto m = served_model::open({.path = model});
  if (!m) return m.why();
  if (!(*m)->chat) return fail("{}: it has no chat template", model.string());
  auto e = engine::start((*m)->weights->weights(), {.threads = 1, .kv_bytes = 32u << 20});
  if (!e) return e.why();
  windows all;
  for (int i = 0; i < calls_max && all.count("keys and values") < windows_min; ++i)
    if (auto looked = look(**e, **m, all); !looked) return looked.why();
  if (all.count("keys and values") < windows_min)
    return fail("only {} windows of keys and values", all.count("keys and values"));
  return all;
}

/// In the middle of an answer whose client then goes.
std::vector<trace_of> search_within(embedded_cluster& on, const needle_finder& finder, int seed) {
  std::vector<trace_of> within;
  on.ask(body(fmt::format(R"(,"stream":true,"max_tokens":900,"seed":{})", seed)),
         "/v1/chat/completions", [&] {
           within = on.search(finder).traces();
           return false;
         });
  return within;
}

/// What is there before anything was asked is no trace: tables of positions, constants.
void drop_known(const embedded_cluster& on, windows& all) {
  const needle_finder finder(all.needles());
  for (const auto& n : on.search(finder, {}).needles_found()) all.drop(n);
}

std::string text_of(const std::vector<trace_of>& left, size_t needles) {
  std::map<std::string, size_t> by_form;
  for (const auto& t : left) ++by_form[t.form];
  std::string text = fmt::format("{} traces of {} windows", left.size(), needles);
  for (const auto& [form, n] : by_form) text += fmt::format(", {} of {}", n, form);
  if (!left.empty()) text += fmt::format(", the first in {}", left[0].place);
  return text;
}

}  // namespace

result<finding> measure_no_activations(const no_trace_settings& s) {
  s.progress("computing what an engine computes of a request");
  auto all = computed(s.cluster.model);
  if (!all) return all.why();
  auto on = embedded_cluster::start(s.cluster);
  if (!on) return on.why();
  drop_known(**on, *all);
  const needle_finder finder(all->needles());
  s.progress("searching for it after an answer");
  auto whole = (*on)->ask(body(R"(,"stream":true,"max_tokens":120)"));
  auto left = (*on)->search(finder).traces();
  finding f{.promise = "S",
            .attacks = "A2 A3",
            .what = s.cluster.ranks > 1
                        ? "nothing computed of a request is left in ranks that are processes"
                        : "nothing computed of a request is left",
            .measured = text_of(left, finder.count()),
            .bound = "0 traces",
            .said = left.empty() ? verdict::held : verdict::broken,
            .note =
                "Keys and values of all layers, hidden rows and logits, as an engine in the "
                "audit computes them of the same request, in windows of 16 bytes."};
  if (!whole.proof) {
    f.said = verdict::not_measured;
    f.note = "no whole answer: " + whole.why;
  }
  s.progress("searching for it in the middle of an answer");
  std::vector<trace_of> within;
  for (int i = 0; i < calls_max && within.empty(); ++i) within = search_within(**on, finder, i);
  f.controls.push_back({.without = "the request being over: in the middle of its answer",
                        .measured = text_of(within, finder.count()),
                        .found = !within.empty()});
  return f;
}

}  // namespace lethe::audit
