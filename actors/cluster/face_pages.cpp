#include "actors/cluster/face_pages.hpp"

#include <fmt/format.h>

#include "runtime/json/json_text.hpp"

namespace lethe {

namespace {

constexpr uint32_t stalled_ms = 10'000;  // requests run and no step ends: not ready

/// What the pages need of a status.
struct seen {
  bool heard = false;
  std::string model;
  uint64_t up_ms = 0;
  uint32_t wanted = 0, ready = 0, stalled = 0;
  bool leaving = false;
  uint32_t running = 0, queued = 0, requests = 0;
  uint64_t pages = 0, reserved = 0, prefilled = 0, decoded = 0, resident = 0, wiped = 0;
  uint64_t admitted = 0, served = 0, refused = 0, cancelled = 0, failed = 0, turned_away = 0;
  uint64_t arenas_wiped = 0, bytes_wiped = 0;
  uint32_t restarts = 0, context = 0;
};

void add_engine(seen& s, schema::EngineStatus::Reader e) {
  auto load = e.getLoad();
  s.restarts += e.getRestarts();
  bool ready = e.getState().getPhase() == schema::Phase::READY;
  bool stalled = load.getStalledMs() >= stalled_ms;
  s.ready += ready && !stalled;
  s.stalled += ready && stalled;
  s.context = std::max(s.context, e.getState().getContext());
  s.running += load.getRunning();
  s.queued += load.getQueued();
  s.requests += load.getRequests();
  s.pages += load.getPages();
  s.reserved += load.getPagesReserved();
  s.prefilled += load.getPrefilled();
  s.decoded += load.getDecoded();
  s.resident += load.getResidentBytes();
  s.wiped += load.getPagesWiped();
}

seen see(const wire<schema::ControlAnswer>& m) {
  seen s;
  if (m.frame.empty()) return s;
  auto read = unpack(m, [&s](schema::ControlAnswer::Reader r) {
    if (!r.isStatus()) return;
    auto status = r.getStatus();
    s.heard = true;
    s.model = status.getModel();
    s.up_ms = status.getUpMs();
    s.wanted = status.getWanted();
    s.leaving = status.getLeaving();
    for (auto e : status.getEngines()) add_engine(s, e);
    auto c = status.getCounts();
    s.admitted = c.getAdmitted();
    s.served = c.getServed();
    s.refused = c.getRefused();
    s.cancelled = c.getCancelled();
    s.failed = c.getFailed();
    s.turned_away = c.getTurnedAway();
    s.arenas_wiped = c.getArenasWiped();
    s.bytes_wiped = c.getBytesWiped();
  });
  return read ? s : seen{};
}

face_answer models(const seen& s) {
  json_text out(std::pmr::get_default_resource());
  out.open('{').key("object").text("list").key("data").open('[');
  if (!s.model.empty()) {
    out.open('{').key("id").text(s.model).key("object").text("model");
    out.key("created").number(uint64_t{0}).key("owned_by").text("lethe");
    out.key("max_model_len").number(uint64_t{s.context}).close('}');
  }
  out.close(']').close('}');
  return {.body = std::string(out.str())};
}

face_answer readyz(const seen& s) {
  bool ready = s.ready > 0 && !s.leaving;
  const char* why = ready           ? "ready"
                    : s.leaving     ? "leaving"
                    : s.stalled > 0 ? "requests run and no token appears"
                                    : "no engine is ready";
  return {.status = ready ? 200 : 503,
          .body = fmt::format(
              "{{\"ready\":{},\"why\":\"{}\",\"engines_ready\":{},\"engines_wanted\":{}}}\n", ready,
              why, s.ready, s.wanted)};
}

struct metric {
  const char *name, *kind, *help;
  double value;
};

face_answer metrics(const seen& s) {
  const metric all[] = {
      {"lethe:engines_wanted", "gauge", "Engines that should serve.", double(s.wanted)},
      {"lethe:engines_ready", "gauge", "Engines that serve.", double(s.ready)},
      {"lethe:engine_restarts_total", "counter", "Restarts of the engines that there are.",
       double(s.restarts)},
      {"lethe:num_requests_running", "gauge", "Sequences in the running batches.",
       double(s.running)},
      {"lethe:num_requests_waiting", "gauge", "Requests that wait in engines.", double(s.queued)},
      {"lethe:kv_cache_usage_perc", "gauge", "Share of key/value pages reserved, 0 to 1.",
       s.pages ? double(s.reserved) / double(s.pages) : 0},
      {"lethe:prompt_tokens_total", "counter", "Prompt tokens computed.", double(s.prefilled)},
      {"lethe:generation_tokens_total", "counter", "Tokens generated.", double(s.decoded)},
      {"lethe:requests_admitted_total", "counter", "Requests that found a place.",
       double(s.admitted)},
      {"lethe:requests_turned_away_total", "counter", "Requests that found none.",
       double(s.turned_away)},
      {"lethe:arenas_wiped_total", "counter", "Arenas wiped at the end of requests.",
       double(s.arenas_wiped)},
      {"lethe:bytes_wiped_total", "counter", "Bytes wiped in arenas.", double(s.bytes_wiped)},
      {"lethe:pages_wiped_total", "counter", "Key/value pages wiped.", double(s.wiped)},
      {"lethe:resident_memory_bytes", "gauge",
       "Memory of the engines' processes, summed by engine.", double(s.resident)},
      {"lethe:uptime_seconds", "gauge", "Since the cluster came up.", double(s.up_ms) / 1000},
  };
  std::string out;
  for (const auto& m : all)
    out +=
        fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", m.name, m.help, m.kind, m.value);
  out +=
      "# HELP lethe:request_success_total Requests that ended, by how.\n# TYPE "
      "lethe:request_success_total counter\n";
  const std::pair<const char*, uint64_t> ends[] = {{"served", s.served},
                                                   {"refused", s.refused},
                                                   {"cancelled", s.cancelled},
                                                   {"failed", s.failed}};
  for (const auto& [how, n] : ends)
    out += fmt::format("lethe:request_success_total{{finished_reason=\"{}\"}} {}\n", how, n);
  return {.content_type = "text/plain; version=0.0.4", .body = std::move(out)};
}

}  // namespace

bool is_face_page(std::string_view path, bool api) {
  return path == "/livez" || path == "/readyz" || path == "/health" || path == "/metrics" ||
         (api && path == "/v1/models");
}

face_answer face_page(std::string_view path, const wire<schema::ControlAnswer>& status) {
  if (path == "/livez") return {.body = "{\"alive\":true}\n"};
  seen s = see(status);
  if (path == "/metrics") return metrics(s);
  return path == "/v1/models" ? models(s) : readyz(s);
}

}  // namespace lethe
