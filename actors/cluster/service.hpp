#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/http/http_server.hpp"

namespace lethe {

/// What an issuer, a relay and a witness are to whoever runs them.
class service {
 public:
  virtual ~service() = default;

  virtual const char* role() const = 0;
  virtual const std::vector<http_listener>& bound() const = 0;
  /// What it counts since its start; nothing of a single exchange.
  virtual std::vector<std::pair<std::string, uint64_t>> counts() const = 0;
  /// What its operator should know besides.
  virtual std::string note() const { return {}; }
  /// No new exchanges; those that began go on.
  virtual void stop_accepting() = 0;
  virtual uint64_t open_exchanges() const = 0;
};

}  // namespace lethe
