#include "actors/cluster/face_pages.hpp"

#include <fmt/format.h>

#include "runtime/json/json_text.hpp"

namespace lethe {

namespace {

cluster_numbers see(const wire<schema::ControlAnswer>& m) {
  cluster_numbers n;
  if (m.frame.empty()) return n;
  auto read = unpack(m, [&n](schema::ControlAnswer::Reader r) {
    if (r.isStatus()) n = numbers_of(r.getStatus());
  });
  return read ? n : cluster_numbers{};
}

face_answer models(const cluster_numbers& n) {
  json_text out(std::pmr::get_default_resource());
  out.open('{').key("object").text("list").key("data").open('[');
  if (!n.model.empty()) {
    out.open('{').key("id").text(n.model).key("object").text("model");
    out.key("created").number(uint64_t{0}).key("owned_by").text("lethe");
    out.key("max_model_len").number(uint64_t{n.context}).close('}');
  }
  out.close(']').close('}');
  return {.body = std::string(out.str())};
}

face_answer readyz(const cluster_numbers& n) {
  bool ready = n.ready > 0 && !n.leaving;
  const char* why = ready           ? "ready"
                    : n.leaving     ? "leaving"
                    : n.stalled > 0 ? "requests run and no token appears"
                                    : "no engine is ready";
  return {.status = ready ? 200 : 503,
          .body = fmt::format(
              "{{\"ready\":{},\"why\":\"{}\",\"engines_ready\":{},\"engines_wanted\":{}}}\n", ready,
              why, n.ready, n.wanted)};
}

}  // namespace

bool is_face_page(std::string_view path, bool api) {
  return path == "/livez" || path == "/readyz" || path == "/health" || path == "/metrics" ||
         (api && path == "/v1/models");
}

face_answer face_page(std::string_view path, const wire<schema::ControlAnswer>& status,
                      metrics_gate& gate) {
  if (path == "/livez") return {.body = "{\"alive\":true}\n"};
  cluster_numbers n = see(status);
  if (path == "/metrics")
    return {.content_type = "text/plain; version=0.0.4", .body = metrics_text(gate.shown(n))};
  return path == "/v1/models" ? models(n) : readyz(n);
}

}  // namespace lethe
