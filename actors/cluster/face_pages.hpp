#pragma once

#include <string>

#include "actors/cluster/messages.hpp"
#include "runtime/cluster/cluster_metrics.hpp"

namespace lethe {

struct face_answer {
  int status = 200;
  const char* content_type = "application/json";
  std::string body;
};

/// /livez, /readyz, /health, /metrics; on the listener of the API /v1/models and
/// /v1/models/MODEL, too.
bool is_face_page(std::string_view path, bool api);
/// One of them, from the cluster's status; a status that is no message stands for none. Counters
/// pass the gate.
face_answer face_page(std::string_view path, const wire<schema::ControlAnswer>& status,
                      metrics_gate& gate);

}  // namespace lethe
