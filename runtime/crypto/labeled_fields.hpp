#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/bytes.hpp"

namespace lethe {

/// What a node signs: no signature of it for one purpose passes for one of another label.
inline std::vector<std::byte> labeled(std::string_view label, bytes_view fields) {
  std::vector<std::byte> message(as_bytes(label).begin(), as_bytes(label).end());
  message.insert(message.end(), fields.begin(), fields.end());
  return message;
}

}  // namespace lethe
