#include "actors/cluster/face_pages.hpp"

#include <fmt/format.h>

#include "runtime/api/api_error.hpp"
#include "runtime/api/served_models.hpp"
#include "runtime/http/path_segment.hpp"

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

served_model model_of(const cluster_numbers& n) { return {.name = n.model, .context = n.context}; }

face_answer models(const cluster_numbers& n) {
  const auto one = model_of(n);
  return {.body = to_json(std::span(&one, n.model.empty() ? 0 : 1))};
}

face_answer model(const cluster_numbers& n, std::string_view name) {
  if (n.model.empty() || decoded_segment(name) != n.model)
    return {.status = 404,
            .body = to_json({.status = 404,
                             .code = "model_not_found",
                             .param = "model",
                             .message = "this cluster serves no such model; see /v1/models"})};
  return {.body = to_json(model_of(n))};
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
         (api && (path == models_path || path.starts_with(one_model_path)));
}

face_answer face_page(std::string_view path, const wire<schema::ControlAnswer>& status,
                      metrics_gate& gate) {
  if (path == "/livez") return {.body = "{\"alive\":true}\n"};
  cluster_numbers n = see(status);
  if (path == "/metrics")
    return {.content_type = "text/plain; version=0.0.4", .body = metrics_text(gate.shown(n))};
  if (path.starts_with(one_model_path)) return model(n, path.substr(one_model_path.size()));
  return path == models_path ? models(n) : readyz(n);
}

}  // namespace lethe
