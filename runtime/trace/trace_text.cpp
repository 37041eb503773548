#include "runtime/trace/trace_text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "runtime/trace/message_names.hpp"

namespace lethe {

namespace {

std::string clock_text(const timeline& t, int64_t at_ns) {
  int64_t unix_ns = t.unix_of(at_ns);
  auto seconds = std::time_t(unix_ns / 1'000'000'000);
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:%H:%M:%S}.{:03}", local, unix_ns / 1'000'000 % 1000);
}

std::string_view word_of(actor_kind k) { return name_of(k); }

/// "12.0 µs  3.40 ms  1.2 s", or dashes where nobody knows.
std::string quantiles_text(const quantiles& q) {
  if (q.count == 0) return fmt::format("{:>9} {:>9} {:>9}", "?", "?", "?");
  return fmt::format("{:>9} {:>9} {:>9}", time_text(q.p50_ns), time_text(q.p99_ns),
                     time_text(q.most_ns));
}

std::string process_text(const timeline& t, uint32_t process) {
  const auto& p = t.from.processes[process];
  return p.pid ? fmt::format("process {} on {}", p.pid, p.host)
               : fmt::format("a process on {}", p.host);
}

std::string ratio_text(int64_t a, int64_t b, bool both) {
  if (!both || a == 0) return "-";
  return fmt::format("{:.2f}", double(b) / double(a));
}

std::string awaited_text(const timeline& t, const awaited& who) {
  bool silent = who.process != nowhere && !t.from.processes[who.process].answered();
  std::string process = who.process == nowhere ? "" : process_text(t, who.process);
  if (who.actor.kind == actor_kind::none) return process + ", which does not answer";
  return actor_text(t, who.actor, who.process) +
         (silent ? fmt::format(" ({}, which does not answer)", process) : "");
}

std::string waits_text(const timeline& t, const stuck_request& s) {
  std::string all;
  for (const auto& who : s.waits_for)
    all += fmt::format("{}{}", all.empty() ? "" : " or ", awaited_text(t, who));
  return all.empty() ? "an engine that has not taken it" : all;
}

void add_stuck(std::string& out, const timeline& t, const stuck_request& s) {
  const auto& e = t.events[s.last];
  out += fmt::format("{:016x}  nothing for {:>9}; last: {} took {}; waits for {}\n", s.request->id,
                     time_text(s.silent_ns), actor_text(t, e.receiver, e.process),
                     message_name(e.type), waits_text(t, s));
}

}  // namespace

std::string time_text(int64_t ns) {
  double v = double(ns);
  if (ns < 1000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.1f} µs", v / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.2f} ms", v / 1e6);
  return fmt::format("{:.3f} s", v / 1e9);
}

std::string actor_text(const timeline& t, const actor_tag& actor, uint32_t process) {
  if (actor.kind == actor_kind::none) return "the console";
  if (process == nowhere) process = t.silent_process(actor.process);
  std::string at = process == nowhere ? fmt::format("pid {}, gone", actor.process)
                                      : t.from.processes[process].host;
  bool many = actor.kind == actor_kind::engine || actor.kind == actor_kind::request;
  return many ? fmt::format("{} {}@{}", word_of(actor.kind), actor.index, at)
              : fmt::format("{}@{}", word_of(actor.kind), at);
}

std::string gaps_text(const timeline& t) {
  std::string out;
  for (const auto& l : t.gaps.lost)
    out += fmt::format("gap: {} has lost {} records, the oldest; raise [trace] records\n",
                       process_text(t, l.process), l.records);
  for (uint32_t p : t.gaps.silent)
    out += fmt::format("gap: {} did not answer; its records are missing\n", process_text(t, p));
  for (const auto& a : t.gaps.absent)
    out +=
        fmt::format("gap: {} was not heard; its records are missing\n", actor_text(t, a, nowhere));
  if (t.gaps.causeless > 0)
    out += fmt::format(
        "gap: {} messages in {} requests were sent by actors whose own records of them are "
        "missing\n",
        t.gaps.causeless, t.gaps.causeless_requests);
  for (const auto& host : t.gaps.disagreeing_hosts)
    out +=
        fmt::format("clocks: the processes of host {} disagree; each is aligned by itself\n", host);
  return out;
}

std::string list_text(const timeline& t, size_t last) {
  std::string out = fmt::format("{:<16}  {:<12}  {:>10}  {:>8}  {:>9}  {}\n", "request", "begun",
                                "duration", "messages", "processes", "last message");
  size_t from = t.requests.size() > last ? t.requests.size() - last : 0;
  for (size_t i = from; i < t.requests.size(); ++i) {
    const auto& r = t.requests[i];
    const auto& e = t.events[r.events.back()];
    out += fmt::format("{:016x}  {}  {:>10}  {:>8}  {:>9}  {} to {}{}\n", r.id,
                       clock_text(t, r.begin_ns), time_text(r.total_ns()), r.events.size(),
                       r.processes.size(), message_name(e.type),
                       actor_text(t, e.receiver, e.process), r.causeless ? "  (gap)" : "");
  }
  if (from > 0) out += fmt::format("and {} before them\n", from);
  if (t.requests.empty()) out += "no request is in the records\n";
  return out + gaps_text(t);
}

std::string slow_text(const timeline& t, slow_by by) {
  std::string out = fmt::format("{:<13} {:<10} {:>7}  {:>29}  {:>29}\n", "", "", "",
                                by == slow_by::queue ? "queue wait *" : "queue wait",
                                by == slow_by::handling ? "handling *" : "handling");
  out += fmt::format("{:<13} {:<10} {:>7}  {:>9} {:>9} {:>9}  {:>9} {:>9} {:>9}\n", "message",
                     "taken by", "count", "p50", "p99", "max", "p50", "p99", "max");
  for (const auto& s : slowest(t, by))
    out += fmt::format("{:<13} {:<10} {:>7}  {}  {}\n", message_name(s.type), word_of(s.receiver),
                       s.count, quantiles_text(s.queue), quantiles_text(s.handling));
  return out + gaps_text(t);
}

std::string stuck_text(const timeline& t, int64_t least_ns) {
  std::string out;
  auto stuck = stuck_requests(t, least_ns);
  for (const auto& s : stuck) add_stuck(out, t, s);
  if (stuck.empty()) {
    out += "no request is stuck: every one that was submitted is released";
    out += least_ns > 0 ? fmt::format(", or was heard of within {}\n", time_text(least_ns)) : "\n";
  } else {
    out +=
        "a message that is still in hand has no record yet: whoever is waited for may have sent "
        "on\n";
  }
  for (const auto& q : growing_queues(t))
    out += fmt::format("{}: its queue grows, {} then {} (medians of the halves of {} messages)\n",
                       actor_text(t, q.actor, q.process), time_text(q.before_ns),
                       time_text(q.after_ns), q.messages);
  return out + gaps_text(t);
}

namespace {

void add_pair(std::string& out, const char* what, const quantiles& a, const quantiles& b) {
  bool both = a.count > 0 && b.count > 0;
  auto value = [](const quantiles& q, int64_t ns) { return q.count ? time_text(ns) : "-"; };
  out += fmt::format("  {:<9} p50 {:>9} {:>9} {:>7}   p99 {:>9} {:>9} {:>7}\n", what,
                     value(a, a.p50_ns), value(b, b.p50_ns), ratio_text(a.p50_ns, b.p50_ns, both),
                     value(a, a.p99_ns), value(b, b.p99_ns), ratio_text(a.p99_ns, b.p99_ns, both));
}

}  // namespace

std::string diff_text(const trace_side& a, const trace_side& b) {
  std::string out = "each: A, B, B / A\n", only;
  for (const auto& p : diff(a, b)) {
    if (p.a.count == 0 || p.b.count == 0) {
      only += fmt::format("only in {}: {} {}\n", p.a.count ? "A" : "B",
                          std::max(p.a.count, p.b.count), message_name(p.type));
      continue;
    }
    out += fmt::format("{:<13} count {:>7} {:>9} {:>7}\n", message_name(p.type), p.a.count,
                       p.b.count, ratio_text(int64_t(p.a.count), int64_t(p.b.count), true));
    add_pair(out, "queue", p.a.queue, p.b.queue);
    add_pair(out, "handling", p.a.handling, p.b.handling);
  }
  out += only;
  if (auto gaps = gaps_text(*a.of); !gaps.empty()) out += "in A:\n" + gaps;
  if (auto gaps = gaps_text(*b.of); !gaps.empty() && a.of != b.of) out += "in B:\n" + gaps;
  return out;
}

}  // namespace lethe
