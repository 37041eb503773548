#include <algorithm>
#include <map>

#include "runtime/json/json_text.hpp"
#include "runtime/trace/message_names.hpp"
#include "runtime/trace/trace_export.hpp"
#include "runtime/trace/trace_text.hpp"

namespace lethe {

namespace {

/// A span of OTLP: ids are hex, times are nanoseconds of the epoch as text.
class otlp_writer {
 public:
  explicit otlp_writer(const timeline& t) : t_(t), out_(std::pmr::get_default_resource()) {}

  std::string write(const std::vector<const traced_request*>& requests) {
    out_.open('{').key("resourceSpans").open('[');
    for (uint32_t p = 0; p < t_.from.processes.size(); ++p) resource(p, requests);
    return std::string(out_.close(']').close('}').str());
  }

 private:
  void resource(uint32_t process, const std::vector<const traced_request*>& requests) {
    const auto& p = t_.from.processes[process];
    out_.open('{').key("resource").open('{').key("attributes").open('[');
    attribute("service.name", "lethe");
    attribute("service.instance.id", fmt::format("{}/{}", p.host, p.pid));
    attribute("host.name", p.host);
    attribute("process.pid", uint64_t{p.pid});
    if (p.lost > 0) attribute("lethe.records_lost", p.lost);
    if (!t_.gaps.silent.empty())
      attribute("lethe.processes_silent", uint64_t{t_.gaps.silent.size()});
    out_.close(']').close('}').key("scopeSpans").open('[').open('{').key("scope").open('{');
    out_.key("name").text("lethe.trace").close('}').key("spans").open('[');
    for (const auto* r : requests) spans(*r, process);
    out_.close(']').close('}').close(']').close('}');
  }

  void spans(const traced_request& r, uint32_t process) {
    if (t_.events[r.events.front()].process == process) root(r);
    std::map<uint32_t, uint64_t> ids;  // of events; 1 is the request's own
    for (uint32_t i : r.events) ids.emplace(i, ids.size() + 2);
    for (uint32_t i : r.events) {
      const auto& e = t_.events[i];
      if (e.process != process) continue;
      auto parent = ids.find(e.cause);
      message(r, e, ids.at(i), parent == ids.end() ? 1 : parent->second);
    }
  }

  void open_span(const traced_request& r, uint64_t id, std::string_view name, int64_t from,
                 int64_t to) {
    out_.open('{').key("traceId").text(fmt::format("{:032x}", r.id));
    out_.key("spanId").text(fmt::format("{:016x}", id)).key("name").text(name);
    out_.key("startTimeUnixNano").text(fmt::format("{}", t_.unix_of(from)));
    out_.key("endTimeUnixNano").text(fmt::format("{}", t_.unix_of(to)));
  }

  void root(const traced_request& r) {
    open_span(r, 1, "request", r.begin_ns, r.end_ns);
    out_.key("kind").number(uint64_t{1}).key("attributes").open('[');
    attribute("lethe.messages", uint64_t{r.events.size()});
    attribute("lethe.released", uint64_t{r.released});
    if (r.causeless > 0) attribute("lethe.messages_without_cause", uint64_t{r.causeless});
    if (r.error_ns > 0) attribute("lethe.clock_error_ns", r.error_ns);
    out_.close(']').close('}');
  }

  void message(const traced_request& r, const traced_event& e, uint64_t id, uint64_t parent) {
    open_span(r, id, message_name(e.type), e.at_ns, e.end_ns());
    out_.key("parentSpanId").text(fmt::format("{:016x}", parent));
    out_.key("kind").number(uint64_t{5}).key("attributes").open('[');  // consumer
    attribute("lethe.from", actor_text(t_, e.sender, e.sender_process));
    attribute("lethe.to", actor_text(t_, e.receiver, e.process));
    attribute("lethe.bytes", uint64_t{e.bytes});
    attribute("lethe.lamport", e.lamport);
    if (e.waited_ns) attribute("lethe.waited_ns", uint64_t(*e.waited_ns));
    out_.close(']').close('}');
  }

  void attribute(const char* key, const std::string& value) {
    out_.open('{').key("key").text(key).key("value").open('{').key("stringValue").text(value);
    out_.close('}').close('}');
  }
  void attribute(const char* key, uint64_t value) {
    out_.open('{').key("key").text(key).key("value").open('{').key("intValue");
    out_.text(fmt::format("{}", value)).close('}').close('}');
  }

  const timeline& t_;
  json_text out_;
};

}  // namespace

std::string otlp_json(const timeline& t, const traced_request* only) {
  std::vector<const traced_request*> requests;
  if (only)
    requests.push_back(only);
  else
    for (const auto& r : t.requests) requests.push_back(&r);
  return otlp_writer(t).write(requests);
}

}  // namespace lethe
