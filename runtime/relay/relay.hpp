#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/http/http_client.hpp"
#include "runtime/http/http_server.hpp"
#include "runtime/http/web_origins.hpp"

namespace lethe {

struct relay_config {
  std::vector<http_listener> listen;
  http_origin gateway;
  std::string gateway_path = "/";  // where it takes encapsulated requests
  http_trust trust;                // who vouches for the gateway
  size_t request_bytes_max = size_t{8} << 20;
  uint64_t answer_bytes_max = uint64_t{256} << 20;
  size_t window_bytes = size_t{64} << 10;  // of one exchange, each way
  uint32_t connections_max = 1024;
  web_origins origins;  // of pages that may ask
};

/// What it counts; it keeps nothing of a single exchange.
struct relay_numbers {
  uint64_t exchanges = 0;  // passed on
  uint64_t open = 0;       // of these, now
  uint64_t refused = 0;    // that no relay passes on
  uint64_t failed = 0;     // whose gateway was not reached, or did not finish
};

/// An oblivious relay (RFC 9458, section 2): passes sealed bytes between clients and one gateway as
/// they come, both ways. The gateway learns no more than their bytes, their media type and whether
/// they come in pieces; clients are told no more of it. It knows addresses and keeps none.
class relay {
 public:
  static result<std::unique_ptr<relay>> start(const relay_config& config);
  ~relay();  // exchanges in flight are cut
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  const std::vector<http_listener>& bound() const;
  relay_numbers numbers() const;
  /// Why the gateway was not reached the last time, if it wasn't; nothing of who asked.
  std::string trouble() const;
  /// No new exchanges; those that began go on.
  void stop_accepting();

 private:
  class desk;
  explicit relay(std::unique_ptr<desk> d);
  std::unique_ptr<desk> desk_;
};

}  // namespace lethe
