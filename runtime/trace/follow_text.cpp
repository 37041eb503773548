#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/trace/message_names.hpp"
#include "runtime/trace/time_share.hpp"
#include "runtime/trace/trace_text.hpp"

namespace lethe {

namespace {

constexpr size_t bar_cells = 32, run_least = 6;
constexpr const char *blank = "·", *waits = "░", *crosses = "▒", *handles = "█";

struct picture {
  std::array<const char*, bar_cells> cells;
  int64_t begin, total;

  picture(int64_t from, int64_t to) : begin(from), total(std::max<int64_t>(1, to - from)) {
    cells.fill(blank);
  }
  size_t cell_of(int64_t at) const {
    double share = double(at - begin) / double(total);
    return size_t(std::clamp(share, 0.0, 1.0) * double(bar_cells - 1));
  }
  void draw(int64_t from, int64_t to, const char* with) {
    for (size_t c = cell_of(from); c <= cell_of(std::max(from, to)); ++c) cells[c] = with;
  }
  std::string text() const {
    std::string out;
    for (const char* c : cells) out += c;
    return out;
  }
};

std::string bar_of(const traced_request& r, const traced_event& e) {
  picture p(r.begin_ns, r.end_ns);
  if (e.left_ns && *e.left_ns < e.at_ns) p.draw(*e.left_ns, e.at_ns, e.crosses() ? crosses : waits);
  p.draw(e.at_ns, e.end_ns(), handles);
  return p.text();
}

std::string who(const timeline& t, const traced_event& e) {
  const auto* by = e.via == nowhere ? nullptr : &t.events[e.via];
  return fmt::format(
      "{} → {}{}",
      by ? actor_text(t, by->receiver, by->process) : actor_text(t, e.sender, e.sender_process),
      actor_text(t, e.receiver, e.process), by ? " (passed on)" : "");
}

std::string line_of(const timeline& t, const traced_request& r, uint32_t event) {
  const auto& e = t.events[event];
  return fmt::format("{:>10}  {:<9} {:<46} {:>6}  {:>9}  {:>9}  {}\n",
                     time_text(std::max<int64_t>(0, e.at_ns - r.begin_ns)), message_name(e.type),
                     who(t, e), e.bytes, e.waited_ns ? time_text(*e.waited_ns) : "?",
                     time_text(e.handled_ns), bar_of(r, e));
}

/// Pieces of an answer and the credit for them go to and fro between two actors.
bool same_two(const traced_event& a, const traced_event& b) {
  bool direct = a.via == nowhere && b.via == nowhere;
  return direct && ((a.sender == b.sender && a.receiver == b.receiver) ||
                    (a.sender == b.receiver && a.receiver == b.sender));
}

std::string lines_of(const timeline& t, const traced_request& r, bool whole) {
  std::string out;
  for (size_t i = 0, end = 0; i < r.events.size(); i = end) {
    end = i + 1;
    while (end < r.events.size() && same_two(t.events[r.events[i]], t.events[r.events[end]])) ++end;
    if (whole || end - i < run_least) {
      for (size_t j = i; j < end; ++j) out += line_of(t, r, r.events[j]);
      continue;
    }
    out += line_of(t, r, r.events[i]);
    out +=
        fmt::format("{:>10}  {} more between the same two; --all shows them\n", "...", end - i - 2);
    out += line_of(t, r, r.events[end - 1]);
  }
  return out;
}

std::string share_bar(const time_share& s) {
  constexpr size_t wide = 60;
  int64_t total = std::max<int64_t>(1, s.total_ns()), done = 0;
  size_t cells = 0;
  std::string out;
  auto add = [&](int64_t ns, const char* with) {
    done += ns;
    size_t until = size_t(double(done) / double(total) * double(wide) + 0.5);
    for (; cells < until; ++cells) out += with;
  };
  add(s.handling_ns, handles);
  add(s.transfer_ns, crosses);
  add(s.waiting_ns, waits);
  add(s.between_ns, blank);
  return out;
}

std::string summary_of(const timeline& t, const traced_request& r) {
  auto s = share_of(t, r);
  auto part = [&](int64_t ns) {
    return fmt::format("{} ({:.0f} %)", time_text(ns),
                       100.0 * double(ns) / double(std::max<int64_t>(1, s.total_ns())));
  };
  return fmt::format(
      "{}\ntotal {} = {} handling {} + {} between processes {} + {} waiting {} + {} between "
      "messages {}\n",
      share_bar(s), time_text(r.total_ns()), handles, part(s.handling_ns), crosses,
      part(s.transfer_ns), waits, part(s.waiting_ns), blank, part(s.between_ns));
}

std::string clocks_of(const timeline& t, const traced_request& r) {
  std::string out;
  if (r.error_ns > 0) {
    out += fmt::format("clocks of its hosts are aligned to within {}:",
                       time_text(int64_t(r.error_ns)));
    std::vector<std::string> hosts;
    for (uint32_t p : r.processes) {
      const auto& host = t.from.processes[p].host;
      if (std::ranges::find(hosts, host) != hosts.end()) continue;
      hosts.push_back(host);
      out += fmt::format(" {} ±{}", host, time_text(int64_t(t.clocks[p].error_ns)));
    }
    out += '\n';
  }
  if (r.contradictions > 0)
    out += fmt::format(
        "clocks contradict the order of messages {} times, by up to {}{}; causes are shown first\n",
        r.contradictions, time_text(r.worst_ns),
        r.contradicts_beyond_error() ? ", more than their error" : ", within their error");
  return out;
}

}  // namespace

std::string follow_text(const timeline& t, const traced_request& r, bool whole) {
  std::string out = fmt::format("request {:016x}: {} messages, {} processes, {}{}\n", r.id,
                                r.events.size(), r.processes.size(), time_text(r.total_ns()),
                                r.released    ? ""
                                : r.submitted ? ", not released"
                                              : ", never submitted");
  out += fmt::format("{:>10}  {:<9} {:<46} {:>6}  {:>9}  {:>9}\n", "offset", "message", "from → to",
                     "bytes", "waited", "handling");
  out += lines_of(t, r, whole) + summary_of(t, r) + clocks_of(t, r);
  if (r.causeless > 0)
    out += fmt::format("gap: {} of these were sent by actors whose own records are missing\n",
                       r.causeless);
  return out + gaps_text(t);
}

}  // namespace lethe
