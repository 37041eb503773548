#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/json/json_text.hpp"
#include "runtime/trace/message_names.hpp"
#include "runtime/trace/trace_export.hpp"
#include "runtime/trace/trace_text.hpp"

namespace lethe {

namespace {

/// Writes one timeline; times are microseconds since its first event.
class perfetto_writer {
 public:
  perfetto_writer(const timeline& t, std::vector<uint32_t> events)
      : t_(t), events_(std::move(events)), out_(std::pmr::get_default_resource()) {
    for (uint32_t i : events_) begin_ = std::min(begin_, t.events[i].at_ns);
  }

  std::string write() {
    out_.open('{').key("displayTimeUnit").text("ms").key("traceEvents").open('[');
    for (uint32_t p = 0; p < t_.from.processes.size(); ++p) name_process(p);
    for (uint32_t i : events_) track_of(t_.events[i]);
    for (const auto& [key, track] : tracks_) name_track(key, track);
    for (uint32_t i : events_) slice(t_.events[i]);
    for (uint32_t i : events_) arrow(i);
    out_.close(']').key("otherData").open('{').key("gaps").text(gaps_text(t_)).close('}');
    return std::string(out_.close('}').str());
  }

 private:
  // Requests of one engine share a tag; their slices would overlap.
  using track_key = std::tuple<uint32_t, uint64_t, uint64_t>;

  uint64_t track_of(const traced_event& e) {
    uint64_t apart = e.receiver.kind == actor_kind::request ? e.trace : 0;
    return tracks_.try_emplace({e.process, e.receiver.packed(), apart}, tracks_.size() + 1)
        .first->second;
  }

  std::string us(int64_t at_ns) const {
    int64_t since = std::max<int64_t>(0, at_ns - begin_);
    return fmt::format("{}.{:03}", since / 1000, since % 1000);
  }

  json_text& open(const char* phase, uint32_t process, uint64_t track) {
    return out_.open('{')
        .key("ph")
        .text(phase)
        .key("pid")
        .number(uint64_t{process} + 1)
        .key("tid")
        .number(track);
  }

  void name(const char* what, uint32_t process, uint64_t track, const std::string& text) {
    open("M", process, track).key("name").text(what).key("args").open('{').key("name").text(text);
    out_.close('}').close('}');
  }

  void name_process(uint32_t p) {
    const auto& process = t_.from.processes[p];
    name("process_name", p, 0, fmt::format("{} pid {}", process.host, process.pid));
  }

  void name_track(const track_key& key, uint64_t track) {
    auto tag = actor_tag::unpacked(std::get<1>(key));
    std::string text = actor_text(t_, tag, std::get<0>(key));
    if (uint64_t request = std::get<2>(key)) text += fmt::format(" {:016x}", request);
    name("thread_name", std::get<0>(key), track, text);
  }

  void slice(const traced_event& e) {
    open("X", e.process, track_of(e)).key("name").text(message_name(e.type));
    out_.key("cat").text("message").key("ts").raw(us(e.at_ns)).key("dur");
    out_.raw(fmt::format("{}.{:03}", e.handled_ns / 1000, e.handled_ns % 1000));
    out_.key("args").open('{').key("request").text(fmt::format("{:016x}", e.trace));
    out_.key("bytes").number(uint64_t{e.bytes}).key("lamport").number(e.lamport);
    out_.key("from").text(actor_text(t_, e.sender, e.sender_process));
    if (e.waited_ns) out_.key("waited_ns").number(uint64_t(*e.waited_ns));
    out_.close('}').close('}');
  }

  /// An arrow must leave from a slice: one that was sent after its cause was handled leaves from
  /// the end of that.
  void arrow(uint32_t i) {
    const auto& e = t_.events[i];
    if (e.cause == nowhere) return;
    const auto& from = t_.events[e.cause];
    int64_t left = std::clamp(e.left_ns.value_or(from.end_ns()), from.at_ns, from.end_ns());
    arrow_end("s", from, left, i);
    arrow_end("f", e, e.at_ns, i);
  }

  void arrow_end(const char* phase, const traced_event& on, int64_t at, uint32_t id) {
    open(phase, on.process, track_of(on)).key("name").text("message").key("cat").text("message");
    out_.key("id").number(uint64_t{id} + 1).key("ts").raw(us(at));
    if (*phase == 'f') out_.key("bp").text("e");
    out_.close('}');
  }

  const timeline& t_;
  std::vector<uint32_t> events_;
  json_text out_;
  std::map<track_key, uint64_t> tracks_;
  int64_t begin_ = INT64_MAX;
};

}  // namespace

std::string perfetto_json(const timeline& t, const traced_request* only) {
  std::vector<uint32_t> events;
  if (only) {
    events = only->events;
  } else {
    events.resize(t.events.size());
    std::iota(events.begin(), events.end(), 0u);
  }
  return perfetto_writer(t, std::move(events)).write();
}

}  // namespace lethe
