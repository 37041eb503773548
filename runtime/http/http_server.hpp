#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/arena/arena.hpp"
#include "runtime/base/result.hpp"
#include "runtime/http/answer_head.hpp"
#include "runtime/http/body_budget.hpp"
#include "runtime/http/http_identity.hpp"
#include "runtime/http/http_limits.hpp"
#include "runtime/http/request_head.hpp"

namespace lethe {

class http_server;

/// A whole request. Every text in it, credentials included, lies in its arena.
class http_request {
 public:
  http_request(uint64_t of, uint32_t on, arena from)
      : id(of), listener(on), memory(std::move(from)), head{.fields = fields_in(memory)} {}
  http_request(http_request&&) = default;

  uint64_t id;
  uint32_t listener;  // index of the address it came in by
  body_share held;    // of `bodies_bytes_max`
  arena memory;       // has `arena_bytes_more` for whoever takes the request on
  http_head head;
  std::string_view body;  // empty where bodies come in pieces

 private:
  static std::pmr::vector<http_field> fields_in(arena& a) {
    return std::pmr::vector<http_field>(a.resource());
  }
};

/// Whom the server tells, on the server's thread: calls return at once, and may answer at once.
/// For each request that arrived, exactly one of `left` and `sent` is the last word.
class http_handler {
 public:
  virtual ~http_handler() = default;
  virtual void arrived(http_server& from, http_request request) = 0;
  /// Where bodies come in pieces: the next one, valid during the call, which counts against the
  /// listener's window until `took` says otherwise; and the body's end.
  virtual void came(uint64_t, std::string_view) {}
  virtual void whole(uint64_t) {}
  /// The answer can no longer be delivered: the client closed (also only its sending side), is
  /// too slow, or the server ends. Whoever works on it may stop.
  virtual void left(uint64_t id) = 0;
  /// The network took so many bytes of the answer's pieces. What is written and not yet drained
  /// may not exceed `queued_bytes_max`.
  virtual void drained(uint64_t id, size_t bytes) = 0;
  virtual void sent(uint64_t id) = 0;  // the whole answer is with the network
};

/// "127.0.0.1:8080", "[::1]:0" (any free port), "unix:/path". Which addresses are wise is the
/// caller's policy.
struct http_listener {
  std::string role;
  std::string address;
  std::optional<http_identity> tls;  // none: in the clear
  /// Not 0: requests arrive with their heads, and bodies come in pieces; no more is read while so
  /// many bytes of one are not taken.
  size_t body_window = 0;
};

struct http_numbers {
  uint64_t connections = 0;  // now
  uint64_t accepted = 0, requests = 0;
  uint64_t refused = 0;  // answered here, without the handler
  uint64_t wakeups = 0;  // of the server's thread, for answers
};

class http_loop;

/// An HTTP/1.1 server: one thread, any number of connections.
/// An answer is begin, write..., end; for an id that has left, or that never was, each is ignored.
/// One that contradicts itself (more or less than its content length, a second begin) cuts the
/// connection, since the client cannot be told otherwise.
class http_server {
 public:
  /// Serves as soon as it returns, or earlier. `handler` outlives the server.
  static result<std::unique_ptr<http_server>> start(std::span<const http_listener> where,
                                                    const http_limits& limits,
                                                    http_handler& handler);
  ~http_server();  // requests in flight leave
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  /// What was bound, in the order asked for, with the real ports.
  const std::vector<http_listener>& bound() const;

  // From any thread:
  void took(uint64_t id, size_t bytes);  // of a body that comes in pieces
  void begin(uint64_t id, http_answer head);
  void write(uint64_t id, std::string_view piece);  // copied; the copy is wiped once it is sent
  void end(uint64_t id);
  void cut(uint64_t id);  // the connection: what was promised of the answer will not come
  /// All of the above in one; the content length is the body's.
  void answer(uint64_t id, http_answer head, std::string_view body);
  /// No new connections and no new requests; those that began are answered, and connections close.
  /// `numbers().connections` falls to zero.
  void stop_accepting();
  http_numbers numbers() const;

 private:
  explicit http_server(std::unique_ptr<http_loop> loop);
  std::unique_ptr<http_loop> loop_;
};

}  // namespace lethe
