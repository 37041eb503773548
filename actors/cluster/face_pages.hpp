#pragma once

#include <optional>
#include <string>

#include "actors/cluster/messages.hpp"

namespace lethe {

struct face_answer {
  int status = 200;
  const char* content_type = "application/json";
  std::string body;
};

/// /v1/models, /livez, /readyz, /health, /metrics from the cluster's last status; nothing for
/// other paths. `api`: the listener of the API has the first, too.
std::optional<face_answer> face_page(std::string_view path, bool api,
                                     const wire<schema::ControlAnswer>& status);

}  // namespace lethe
