#pragma once

#include "runtime/config/cluster_config.hpp"
#include "runtime/log/note_key.hpp"

namespace lethe {

/// A witness of [gateway] witnesses, "URL KEY", taken apart; nothing where it is not of that form.
struct witness_text {
  std::string url;
  note_key key;

  static result<witness_text> parse(std::string_view text);
};

/// What a file says of gateway, issuer, relay and witness, and whether it needs a model.
void check_services(cluster_config& config);

}  // namespace lethe
