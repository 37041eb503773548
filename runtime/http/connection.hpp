#pragma once

#include <kj/async-io.h>
#include <kj/function.h>
#include <kj/timer.h>
#include <kj/vector.h>

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>

#include "runtime/http/chunk_reader.hpp"
#include "runtime/http/http_block.hpp"
#include "runtime/http/http_server.hpp"

namespace lethe {

class connection;

/// What all connections of a server share; its thread's alone.
struct serving {
  http_server* server = nullptr;
  http_handler& handler;
  const http_limits limits;
  kj::Timer& timer;
  const std::shared_ptr<body_budget> bodies =
      std::make_shared<body_budget>(limits.bodies_bytes_max);
  std::unordered_map<uint64_t, connection*> answering{};
  uint64_t requests = 0;  // the last id given
  uint64_t refused = 0;
  bool draining = false;
  kj::Function<void()> bury = [] {};  // a connection is dead: destroy it, but not from within it
};

/// One client: reads a request, waits for the program's answer, writes it, and again. While it
/// answers it goes on reading, to notice the client's end and to keep what comes early.
class connection final : private kj::TaskSet::ErrorHandler {
 public:
  connection(serving& s, kj::Own<kj::AsyncIoStream> stream, uint32_t listener, size_t body_window);
  ~connection() noexcept(false);
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  void serve();
  void refuse(int status);  // answers that, then closes

  // For the request whose id is in `serving::answering`:
  void begin(const http_answer& answer);
  void write(http_block piece);
  void end();
  void took_of_body(size_t bytes);

  void flush();  // what was begun and written since
  void tick();   // looks at the clock
  void drain();
  void close_now();
  bool dead() const { return stage_ == stage::dead; }

 private:
  enum class stage { head, body, answering, closing, dead };

  // connection.cpp: what comes in
  void read_on();
  void took(size_t bytes);
  void advance();
  bool advance_head();
  bool advance_body();
  bool take_head(size_t bytes);
  bool take_length();
  bool take_chunks();
  bool keep(std::string_view piece);
  void announce();
  char* body_room(size_t bytes);
  void arrive();
  std::string_view input() const { return {buffer_.get() + from_, to_ - from_}; }
  void consume(size_t bytes);
  void wipe_input();

  // connection_answer.cpp: what goes out
  void wrote(size_t blocks);
  void answered();
  void linger();
  void taskFailed(kj::Exception&&) override { close_now(); }
  kj::TimePoint after(uint32_t ms) const { return s_.timer.now() + ms * kj::MILLISECONDS; }

  serving& s_;
  kj::Own<kj::AsyncIoStream> stream_;
  uint32_t listener_;
  size_t window_;  // of a body that comes in pieces; 0: it comes whole
  stage stage_ = stage::head;
  kj::TimePoint deadline_;
  bool started_ = false;  // the first byte of a request is here

  std::unique_ptr<char[]> buffer_;  // head_bytes_max; input is [from_, to_)
  size_t from_ = 0, to_ = 0;
  bool reading_ = false;
  bool direct_ = false;  // into the arena rather than the buffer

  std::optional<http_request> request_;  // until it arrives
  chunk_reader chunks_;
  char* body_ = nullptr;
  size_t body_has_ = 0, body_room_ = 0;
  size_t untaken_ = 0;  // of a body that comes in pieces
  bool chunked_ = false;
  uint64_t content_length_ = 0;

  uint64_t id_ = 0;  // of the request being answered
  bool old_client_ = false, head_only_ = false, keep_alive_ = false;
  bool begun_ = false, ended_ = false;
  body_frame frame_ = body_frame::none;
  uint64_t length_left_ = 0;

  std::deque<http_block> queue_;
  size_t queued_ = 0;      // credit in it
  size_t first_sent_ = 0;  // bytes of the first block that are out
  kj::Vector<kj::ArrayPtr<const kj::byte>> slices_;
  bool writing_ = false;
  kj::TimePoint send_deadline_;
  kj::TaskSet tasks_;  // last: its reads and writes end before their memory
};

}  // namespace lethe
