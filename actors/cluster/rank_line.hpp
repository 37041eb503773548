#pragma once

#include <memory>
#include <string>

#include "runtime/base/bytes.hpp"
#include "runtime/base/owned_fd.hpp"
#include "runtime/base/result.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace lethe {

struct node_tls;

/// What a process shows of itself to those that it has lines with, and whom it believes.
class rank_keys {
 public:
  static result<rank_keys> of(const node_tls& tls);
  ssl_ctx_st* get() const { return context_.get(); }

 private:
  explicit rank_keys(std::shared_ptr<ssl_ctx_st> c) : context_(std::move(c)) {}
  std::shared_ptr<ssl_ctx_st> context_;
};

/// A connection between the process of an engine and that of one of its ranks, over mutual TLS.
/// Calls wait; one thread makes them.
class rank_line {
 public:
  /// Of a rank: to its engine, which is on `host`.
  static result<rank_line> call(const std::string& address, uint16_t port, const std::string& host,
                                const rank_keys& keys);
  /// With whoever is at the other end, once both have shown who they are.
  static result<rank_line> greet(owned_fd fd, const rank_keys& keys, bool calls);

  /// Whom the other's certificate names.
  const std::string& host() const { return host_; }
  bool send(bytes_view bytes);
  bool receive(std::span<std::byte> bytes);
  /// From now on calls wait as long as it takes; until then a few seconds.
  void wait_for_ever();

 private:
  struct end_of_tls {
    void operator()(ssl_st* tls) const;
  };

  owned_fd fd_;
  std::unique_ptr<ssl_st, end_of_tls> tls_;
  std::string host_;
};

/// "10.0.0.7" of a name that the system knows, or of itself.
result<std::string> numeric_address(const std::string& name);

}  // namespace lethe
