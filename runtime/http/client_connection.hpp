#pragma once

#include <kj/async-io.h>
#include <kj/compat/tls.h>
#include <kj/function.h>
#include <kj/timer.h>

#include <memory>
#include <optional>

#include "runtime/http/chunk_reader.hpp"
#include "runtime/http/http_client.hpp"

namespace lethe {

/// A call that has not ended.
struct open_call {
  uint64_t id;
  http_call what;
  std::shared_ptr<http_call_watcher> who;
};

/// What all connections of a client share; its thread's alone.
struct client_shared {
  const http_client_limits limits;
  kj::Network& network;
  kj::Timer& timer;
  kj::Function<kj::TlsContext&()> tls;  // made when it is first needed: the system's store is large
  kj::Function<void(uint64_t call)> call_ended = [](uint64_t) {};
  kj::Function<void()> settle = [] {};  // a connection is idle or dead: see to it, but later
};

/// One connection to a server, with at most one call on it.
class client_connection final : private kj::TaskSet::ErrorHandler {
 public:
  client_connection(client_shared& s, const http_origin& to);
  client_connection(const client_connection&) = delete;
  client_connection& operator=(const client_connection&) = delete;

  const http_origin& to() const { return to_; }
  bool idle() const { return stage_ == stage::idle; }
  /// Of an idle one: its server has not closed it, nor said anything unasked.
  bool still_there() const;
  bool dead() const { return stage_ == stage::dead; }

  /// On a new or an idle connection.
  void begin(open_call call);
  void write(std::string_view piece);  // of a streamed call
  void finish();
  void took(size_t bytes);
  void give_up(const error& why);
  void tick();

 private:
  enum class stage { fresh, connecting, head, body, idle, dead };

  void connect();
  void connected(kj::Own<kj::AsyncIoStream> stream);
  void send();
  void write_on();
  void read_on();
  void came(size_t bytes);
  void at_end();
  void advance();
  bool advance_head();
  bool advance_body();
  bool deliver(std::string_view piece);
  void whole();
  void end(const result<void>& how);
  void close_now();
  void taskFailed(kj::Exception&& e) override;
  error broke(const char* what) const;
  error unanswered(const char* what) const;
  std::string_view input() const { return {buffer_.get() + from_, to_end_ - from_}; }
  kj::TimePoint after(uint32_t ms) const { return s_.timer.now() + ms * kj::MILLISECONDS; }

  client_shared& s_;
  http_origin to_;
  stage stage_ = stage::fresh;
  kj::Own<kj::AsyncIoStream> stream_;
  kj::Maybe<int> fd_;  // of the stream, below TLS
  kj::TimePoint deadline_;

  std::optional<open_call> call_;
  std::string out_;    // the call, framed, what is not with the network of it
  size_t credit_ = 0;  // bytes of pieces in it
  bool finished_ = false;
  bool writing_ = false, unwritable_ = false;

  std::unique_ptr<char[]> buffer_;  // head_bytes_max; input is [from_, to_end_)
  size_t from_ = 0, to_end_ = 0;
  bool reading_ = false;
  http_reply head_;
  chunk_reader chunks_;
  uint64_t left_ = 0;      // of a body with a length
  uint64_t body_has_ = 0;  // bytes of it that came
  size_t untaken_ = 0;
  kj::TaskSet tasks_;  // last: its reads and writes end before their memory
};

}  // namespace lethe
