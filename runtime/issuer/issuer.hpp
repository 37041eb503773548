#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/unix_time.hpp"
#include "runtime/http/http_server.hpp"
#include "runtime/http/web_origins.hpp"
#include "runtime/issuer/issuer_limits.hpp"
#include "runtime/store/account_store.hpp"

namespace lethe {

struct issuer_config {
  std::vector<http_listener> listen;
  std::filesystem::path folder;
  /// What issuer and gateway share; empty: `gateway.secret` in the folder. Made if it is missing.
  std::filesystem::path secret;
  uint32_t epoch_s = 604'800;
  uint32_t batch = 64;  // tokens of a purchase
  uint32_t threads = 2;
  uint32_t waiting_max = limits::issuer_waiting_max;
  web_origins origins;  // of pages that may buy
  std::function<uint64_t()> now_s = unix_s;
  std::chrono::milliseconds look_every{1000};  // at the clock
};

/// What it counts; it keeps nothing of a single purchase.
struct issuer_numbers {
  uint64_t accounts = 0;  // that may buy
  uint64_t bought = 0;    // tokens, since the start
  uint64_t changed = 0;
  uint64_t refused = 0;
  uint64_t failed = 0;  // for a fault of its own
  uint64_t open = 0;
  uint32_t epoch = 0;  // of tokens, not of rosters
};

/// Signs blinded tokens for accounts with a quota, and change for the gateway (docs/PROTOCOL.md,
/// sections 6a and 7). It knows who buys; what a token pays for, and whose it was, it can't know.
/// Its folder holds keys, accounts, changed tokens and the secret, and is one process's alone.
class issuer {
 public:
  static result<std::unique_ptr<issuer>> start(const issuer_config& config);
  ~issuer();  // what was not begun is not answered
  issuer(const issuer&) = delete;
  issuer& operator=(const issuer&) = delete;

  const std::vector<http_listener>& bound() const;
  issuer_numbers numbers() const;
  /// The last fault that its operator should know of; empty: none, or it has passed.
  std::string trouble() const;
  /// No new exchanges; those that began go on.
  void stop_accepting();

 private:
  class house;
  explicit issuer(std::unique_ptr<house> h);
  std::unique_ptr<house> house_;
};

/// The accounts in an issuer's folder, which is made if it is missing: for its operator, whether or
/// not the issuer runs.
result<std::unique_ptr<account_store>> open_accounts(const std::filesystem::path& folder);

}  // namespace lethe
