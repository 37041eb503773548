#pragma once

#include <filesystem>

namespace lethe {

/// What a server shows: a certificate, intermediate ones after it, and its key. PEM.
struct http_identity {
  std::filesystem::path certificate, key;
};

/// Whom a client believes: the authorities in a PEM file; without one the system's.
struct http_trust {
  std::filesystem::path authorities;
};

}  // namespace lethe
