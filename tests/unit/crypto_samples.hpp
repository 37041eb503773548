#pragma once

#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/bytes.hpp"
#include "tests/places.hpp"

/// Bytes in the forms that tests have them, and the published vectors.
namespace lethe::test {

using bytes = std::vector<std::byte>;

inline bytes from_hex(std::string_view hex) {
  bytes out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(std::byte(uint8_t(std::stoul(std::string(hex.substr(i, 2)), nullptr, 16))));
  return out;
}

inline bytes hex_of(simdjson::dom::element object, const char* field) {
  return from_hex(std::string_view(object[field]));
}

inline bytes copy_of(bytes_view b) { return {b.begin(), b.end()}; }
inline bytes text_bytes(std::string_view t) { return copy_of(as_bytes(t)); }

inline bytes joined(std::initializer_list<bytes_view> parts) {
  bytes out;
  for (bytes_view part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

inline bytes random_bytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  bytes out(size);
  for (std::byte& b : out) b = std::byte(uint8_t(random()));
  return out;
}

inline bytes flipped(bytes b, size_t at, uint8_t bits = 1) {
  b[at] ^= std::byte(bits);
  return b;
}

/// vectors/protocol; empty when it is not there, which only CI must not accept.
inline std::filesystem::path protocol_vectors() {
  const char* given = std::getenv("LETHE_VECTORS");
  auto path = std::filesystem::path(given ? given : places::vectors) / "protocol";
  if (std::filesystem::exists(path)) return path;
  const char* ci = std::getenv("CI");
  if (ci && std::string_view(ci) == "true") ADD_FAILURE() << path << " is not there";
  return {};
}

#define LETHE_NEEDS_PROTOCOL_VECTORS() \
  if (lethe::test::protocol_vectors().empty()) GTEST_SKIP() << "no vectors: set LETHE_VECTORS"

}  // namespace lethe::test
