#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/http/http_identity.hpp"
#include "runtime/http/reply_head.hpp"

namespace lethe {

/// Whom a call goes to.
struct http_origin {
  bool tls = false;
  std::string host;
  uint16_t port = 0;
  std::string known_as;  // the name in its certificate; empty: `host`

  bool operator==(const http_origin&) const = default;
  std::string text() const;  // "https://host:443"
};

/// "https://host/path", "http://127.0.0.1:8080": origin and path, without query and fragment.
result<std::pair<http_origin, std::string>> read_url(std::string_view url);

struct http_call {
  http_origin to;
  std::string method = "GET", path = "/";
  std::vector<std::pair<std::string, std::string>> fields;  // neither Host nor the body's frame
  std::string body;
  bool chunked = false;   // the body goes in chunks, without a length
  bool streamed = false;  // so, and more of it comes by `write`, until `finish`
};

/// Told on the client's thread; calls return at once, and may ask, take and cancel.
class http_call_watcher {
 public:
  virtual ~http_call_watcher() = default;
  virtual void began(uint64_t call, const http_reply& head) = 0;
  /// A piece of the answer. It counts against the call's window until `took` says otherwise.
  virtual void came(uint64_t call, std::string_view piece) = 0;
  /// So many bytes of what was written to a streamed call are with the network.
  virtual void drained(uint64_t, size_t) {}
  /// The last word of each call: the answer is whole, or why it is not.
  virtual void ended(uint64_t call, const result<void>& how) = 0;
};

struct http_client_limits {
  size_t head_bytes_max = size_t{16} << 10;
  uint32_t fields_max = 100;
  uint64_t body_bytes_max = uint64_t{64} << 20;  // of one answer
  size_t window_bytes = size_t{1} << 20;  // that came and was not taken; then no more is read
  uint32_t connections_max = 64;          // to one origin; further calls wait
  uint32_t waiting_max = 1024;            // calls that wait so, of all origins
  uint32_t connect_ms = 10'000;           // with TLS
  uint32_t answer_ms = 120'000;           // from the call's begin to its answer's head
  uint32_t stall_ms = 60'000;             // for the next byte of an answer or of our own call
  uint32_t idle_ms = 15'000;              // that a connection is kept for the next call
};

class http_client_loop;

/// An HTTP/1.1 client: one thread, any number of calls. Connections are kept and used again. A call
/// is never repeated by itself: whether to ask again is for who knows what it does.
class http_client {
 public:
  static result<std::unique_ptr<http_client>> start(const http_client_limits& limits,
                                                    const http_trust& trust);
  ~http_client();  // calls that are open end, and are told so
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  // From any thread:
  uint64_t ask(http_call call, std::shared_ptr<http_call_watcher> who);
  void write(uint64_t call, std::string_view piece);  // copied
  void finish(uint64_t call);
  void took(uint64_t call, size_t bytes);
  void cancel(uint64_t call);  // ended at once, if it was not

 private:
  explicit http_client(std::unique_ptr<http_client_loop> loop);
  std::unique_ptr<http_client_loop> loop_;
};

/// An answer that is waited for.
struct http_whole {
  http_reply head;
  std::string body;
};

/// Asks, and tells once, on the client's thread, when the answer is whole or has failed.
uint64_t ask_whole(http_client& client, http_call call,
                   std::function<void(result<http_whole>)> then);
/// The same for who may sleep until then.
result<http_whole> ask_whole(http_client& client, http_call call);

}  // namespace lethe
