#include "actors/audit/live_shapes.hpp"

#include <fmt/format.h>

#include <map>
#include <span>

#include "runtime/audit/stream_shapes.hpp"
#include "runtime/audit/tap_capture.hpp"

namespace lethe::audit {

namespace {

using clock = std::chrono::steady_clock;
/// Answers of these many tokens, to several questions each. The longest takes several pieces.
constexpr uint32_t lengths[] = {8, 40, 600};
constexpr const char* questions[] = {"What is 20 plus 22?", "What is a dog?", "Name three fruits.",
                                     "What is a river?"};

/// Sizes vary a little by how bytes meet on their way: what they tell has to be learnt.
constexpr uint32_t unshaped_captures = 24;

struct prompt {
  const char* question;
  uint32_t tokens;
  /// Another for each capture: one body is drawn for three times only.
  std::string body(uint32_t capture) const {
    return fmt::format(R"({{"model":"{}","temperature":0,"ignore_eos":true,"max_tokens":{},)"
                       R"("seed":{:04},"messages":[{{"role":"user","content":"{}"}}]}})",
                       model_name, tokens, 1000 + capture, question);
  }
};

uint64_t us_now() {
  return uint64_t(
      std::chrono::duration_cast<std::chrono::microseconds>(clock::now().time_since_epoch())
          .count());
}

/// A client whose traffic all passes a tap. It asks one thing after the other.
class tapped_client {
 public:
  static result<std::unique_ptr<tapped_client>> start(const embedded_cluster& on,
                                                      const std::string& program,
                                                      const std::string& name) {
    std::unique_ptr<tapped_client> t(new tapped_client);
    t->recording_ = (on.folder() / (name + ".seen")).string();
    auto relay = on.relay();
    if (!relay) return relay.why();
    const auto port = relay->substr(relay->rfind(':') + 1);
    auto tap = child::start({program, "tap", "record", port, "--out", t->recording_},
                            (on.folder() / "run").string());
    if (!tap) return tap.why();
    t->tap_ = *std::move(tap);
    auto url = t->tap_->url("tap", std::chrono::seconds(30));
    if (!url) return url.why();
    auto client = on.new_client(name, *url);
    if (!client) return client.why();
    t->client_ = *std::move(client);
    return t;
  }

  result<void> ask(const std::string& body) {
    begun_us_.push_back(us_now());
    auto s = audit::ask(*client_, body);
    if (s.status != 200 || !s.proof) return fail("no whole answer: {} {}", s.why, s.body);
    ended_us_ = us_now();
    return {};
  }

  /// Of each answer, in the order in which they were asked for: what passed the tap.
  result<std::vector<capture>> seen() {
    tap_.reset();  // writes what it has
    auto parts = parts_in(recording_);
    if (!parts) return parts.why();
    std::vector<capture> all;
    for (size_t i = 0; i < begun_us_.size(); ++i)
      all.push_back(answer_between(*parts, begun_us_[i],
                                   i + 1 < begun_us_.size() ? begun_us_[i + 1] : ended_us_));
    return all;
  }

 private:
  tapped_client() = default;

  /// The connection that was sent the most is the request's: others only look.
  static capture answer_between(const std::vector<tapped_part>& parts, uint64_t from, uint64_t to) {
    std::map<uint64_t, uint64_t> asked;
    for (const auto& p : parts)
      if (p.at_us >= from && p.at_us < to && p.where == tapped_part::way::asked)
        asked[p.connection] += p.bytes;
    if (asked.empty()) return {};
    const uint64_t whose =
        std::ranges::max_element(asked, {}, [](const auto& a) { return a.second; })->first;
    capture seen;
    uint64_t left_us = from;
    for (const auto& p : parts) {
      if (p.at_us < from || p.at_us >= to || p.connection != whose) continue;
      if (p.where == tapped_part::way::asked) left_us = p.at_us, seen.clear();
      if (p.where == tapped_part::way::said)
        seen.push_back({double(p.at_us - left_us) / 1e3, uint32_t(p.bytes)});
    }
    return seen;
  }

  std::string recording_;
  std::unique_ptr<child> tap_;
  std::unique_ptr<private_client> client_;
  std::vector<uint64_t> begun_us_;
  uint64_t ended_us_ = 0;
};

std::vector<prompt> prompts_of(bool brief) {
  std::vector<prompt> all;
  for (uint32_t tokens : std::span(lengths).first(brief ? 2 : std::size(lengths)))
    for (const char* question : questions) all.push_back({question, tokens});
  return all;
}

/// By turns: the first capture of each prompt, the second of each. Nobody else asks meanwhile, so
/// that nothing hides in others' noise.
result<captures> captured(const embedded_settings& settings, const std::vector<prompt>& prompts,
                          uint32_t each) {
  auto on = embedded_cluster::start(settings);
  if (!on) return on.why();
  auto client = tapped_client::start(**on, settings.program, "tapped");
  if (!client) return client.why();
  for (uint32_t turn = 0; turn < each; ++turn)
    for (const auto& p : prompts)
      if (auto asked = (*client)->ask(p.body(turn)); !asked) return asked.why();
  auto seen = (*client)->seen();
  if (!seen) return seen.why();
  captures all(prompts.size());
  for (size_t i = 0; i < seen->size(); ++i)
    all[i % prompts.size()].push_back(std::move((*seen)[i]));
  return all;
}

}  // namespace

result<finding> measure_live_shapes(const no_trace_settings& s) {
  const auto prompts = prompts_of(s.brief);
  const uint32_t each = s.brief ? 10 : 14;
  s.progress("tapping the answers of a cluster");
  auto shaped = captured(s.cluster, prompts, each);
  if (!shaped) return shaped.why();
  s.progress("the same of one whose answers have no shape");
  auto unshaped = s.cluster;
  unshaped.profile = "lab";
  unshaped.shape = "off";
  auto plain = captured(unshaped, prompts, unshaped_captures);
  if (!plain) return plain.why();
  auto f = judge_captures(*shaped, *plain);
  if (f.note.empty())
    f.note = fmt::format(
        "one client, behind a tap between it and the relay; {} captures of each prompt, half of "
        "them learnt from",
        each);
  return f;
}

}  // namespace lethe::audit
