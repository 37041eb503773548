#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lethe {

inline constexpr std::string_view models_path = "/v1/models", one_model_path = "/v1/models/";

struct served_model {
  std::string_view name;
  std::optional<uint64_t> context = {};  // in tokens, where it is known
};

/// What /v1/models tells of all, and /v1/models/MODEL of one.
std::string to_json(const served_model& m);
std::string to_json(std::span<const served_model> all);

}  // namespace lethe
