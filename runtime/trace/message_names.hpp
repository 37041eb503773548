#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lethe {

struct message_type {
  uint64_t id;
  const char* name;
};

/// Every message that actors tell each other.
std::span<const message_type> message_types();

/// "Submit"; of a type that this build does not know, its id in hex.
std::string message_name(uint64_t type);

}  // namespace lethe
