#include "runtime/trace/timeline.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "schemas/messages.capnp.h"

namespace lethe {

namespace {

/// Which process a sender lived in. A pid alone does not say: containers share them.
class sender_index {
 public:
  explicit sender_index(const gathered& all) {
    for (uint32_t p = 0; p < all.processes.size(); ++p) {
      if (all.processes[p].answered()) of_pid_[all.processes[p].pid].insert(p);
      for (const auto& r : all.processes[p].records) of_actor_[r.receiver].insert(p);
    }
  }

  uint32_t find(uint64_t sender, uint32_t receiving) const {
    auto tag = actor_tag::unpacked(sender);
    if (tag.kind == actor_kind::none) return nowhere;
    if (auto at = of_actor_.find(sender); at != of_actor_.end()) return one(at->second, receiving);
    if (auto at = of_pid_.find(tag.process); at != of_pid_.end()) return one(at->second, receiving);
    return nowhere;
  }

 private:
  static uint32_t one(const std::set<uint32_t>& of, uint32_t receiving) {
    if (of.contains(receiving)) return receiving;
    return of.size() == 1 ? *of.begin() : nowhere;
  }
  std::unordered_map<uint64_t, std::set<uint32_t>> of_actor_;
  std::unordered_map<uint32_t, std::set<uint32_t>> of_pid_;
};

traced_event event_of(const trace_record& r, uint32_t process, uint32_t sender_process,
                      const std::vector<aligned_clock>& clocks) {
  traced_event e{.trace = r.trace,
                 .lamport = r.lamport,
                 .type = r.type,
                 .bytes = r.bytes,
                 .sender = actor_tag::unpacked(r.sender),
                 .receiver = actor_tag::unpacked(r.receiver),
                 .process = process,
                 .sender_process = sender_process};
  e.at_ns = int64_t(r.at_ns) + clocks[process].offset_ns;
  e.handled_ns = int64_t(r.handled_ns);
  e.sent_raw_ns = int64_t(r.at_ns) - r.queued_ns;
  if (sender_process != nowhere) e.sent_ns = e.sent_raw_ns + clocks[sender_process].offset_ns;
  return e;
}

void add_events(timeline& t) {
  sender_index senders(t.from);
  std::set<uint64_t> absent;
  for (uint32_t p = 0; p < t.from.processes.size(); ++p) {
    auto& process = t.from.processes[p];
    for (const auto& r : process.records) {
      uint32_t from = senders.find(r.sender, p);
      t.events.push_back(event_of(r, p, from, t.clocks));
      auto sender = t.events.back().sender;
      if (from == nowhere && sender.kind != actor_kind::none &&
          t.silent_process(sender.process) == nowhere)
        absent.insert(r.sender);
    }
    process.records.clear();
    process.records.shrink_to_fit();
  }
  for (uint64_t tag : absent) t.gaps.absent.push_back(actor_tag::unpacked(tag));
  std::ranges::stable_sort(t.events, {}, &traced_event::at_ns);
}

void add_requests(timeline& t) {
  std::map<uint64_t, std::vector<uint32_t>> members;
  for (uint32_t i = 0; i < t.events.size(); ++i)
    if (t.events[i].trace != 0) members[t.events[i].trace].push_back(i);
  for (auto& [id, of] : members) {
    auto& request = t.requests.emplace_back(traced_request{.id = id});
    trace_detail::order_request(t, std::move(of), request);
    t.gaps.causeless += request.causeless;
    t.gaps.causeless_requests += request.causeless > 0;
  }
  std::ranges::stable_sort(t.requests, {}, &traced_request::begin_ns);
}

void look_at_processes(timeline& t) {
  std::set<std::string> disagreeing;
  bool first = true;
  for (uint32_t p = 0; p < t.from.processes.size(); ++p) {
    const auto& process = t.from.processes[p];
    if (process.lost > 0) t.gaps.lost.push_back({p, process.lost});
    if (!process.answered()) t.gaps.silent.push_back(p);
    if (t.clocks[p].contradicted) disagreeing.insert(process.host);
    if (!process.answered()) continue;
    int64_t now = int64_t(process.now_ns) + t.clocks[p].offset_ns;
    t.now_ns = first ? now : std::max(t.now_ns, now);
    first = false;
  }
  t.gaps.disagreeing_hosts.assign(disagreeing.begin(), disagreeing.end());
}

}  // namespace

bool timeline::off() const {
  return events.empty() && std::ranges::all_of(from.processes, [](const traced_process& p) {
           return p.mode == trace_mode::off;
         });
}

uint32_t timeline::silent_process(uint32_t pid) const {
  uint32_t found = nowhere;
  for (uint32_t p : gaps.silent) {
    if (pid == 0 || from.processes[p].pid != pid) continue;
    if (found != nowhere) return nowhere;
    found = p;
  }
  return found;
}

timeline make_timeline(gathered from) {
  timeline t{.from = std::move(from)};
  t.clocks = align_clocks(t.from);
  look_at_processes(t);
  add_events(t);
  trace_detail::find_causes(t.events);
  add_requests(t);
  return t;
}

result<const traced_request*> find_request(const timeline& t, const std::string& word) {
  if (t.requests.empty()) return fail("the records hold no request");
  if (word == "last") return &t.requests.back();
  std::string lower = word;
  for (char& c : lower)
    if (c >= 'A' && c <= 'F') c = char(c - 'A' + 'a');
  if (lower.starts_with("0x")) lower.erase(0, 2);
  if (lower.empty() || lower.size() > 16 ||
      lower.find_first_not_of("0123456789abcdef") != lower.npos)
    return fail("{}: write the beginning of a request's id in hex, or last", word);
  const traced_request* found = nullptr;
  size_t matches = 0;
  for (const auto& r : t.requests) {
    if (!fmt::format("{:016x}", r.id).starts_with(lower)) continue;
    found = &r;
    ++matches;
  }
  if (matches == 0)
    return fail("no request {} in the records; lethe trace list shows which there are", lower);
  if (matches > 1) return fail("{} requests begin with {}; write more of the id", matches, lower);
  return found;
}

}  // namespace lethe
