#pragma once

#include <optional>

#include "parallel/rank_need.hpp"
#include "runtime/config/layout.hpp"
#include "runtime/model/inspect.hpp"

namespace lethe {

/// A cluster file understood: what would run where, and what it would take.
struct checked_config {
  cluster_config config;
  cluster_layout layout;
  std::optional<model_facts> model;  // none: not on this machine
  std::vector<rank_need> needs;      // beside layout.ranks, if the model is here
  uint64_t weight_bytes = 0;         // of the whole model, as it is loaded

  bool good() const { return config.problems().empty(); }
  /// An issuer, a relay or a witness: no model, no engines.
  bool is_service() const {
    auto c = config.get();
    return c.hasIssuer() || c.hasRelay() || c.hasWitness();
  }
};

/// Reads a file and refuses what can't work; config.problems() has all of it.
checked_config check_config(const std::filesystem::path& file, const machine& here);

}  // namespace lethe
