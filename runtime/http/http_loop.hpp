#pragma once

#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "runtime/http/http_block.hpp"
#include "runtime/http/http_server.hpp"
#include "runtime/http/listen.hpp"

namespace lethe {

/// What the program tells the server's thread.
struct http_letter {
  struct begin {
    http_answer answer;
  };
  struct piece {
    http_block block;
  };
  struct end {};
  struct stop {};  // accepting
  struct quit {};
  uint64_t id = 0;
  std::variant<begin, piece, end, stop, quit> what;
};

/// The letter box: any thread puts in, one thread takes out and is woken once for many.
class http_letters {
 public:
  explicit http_letters(int wake_fd) : wake_fd_(wake_fd) {}
  ~http_letters();
  int fd() const { return wake_fd_; }

  template <class... Letters>
  void put(Letters... letters) {
    bool first = false;
    {
      std::lock_guard lock(mutex_);
      first = letters_.empty();
      (letters_.push_back(std::move(letters)), ...);
    }
    if (first) wake();
  }
  std::vector<http_letter> take();
  uint64_t wakeups() const { return wakeups_.load(std::memory_order_relaxed); }

 private:
  void wake();

  int wake_fd_;
  std::atomic<uint64_t> wakeups_{0};
  std::mutex mutex_;
  std::vector<http_letter> letters_;
};

/// The server's thread, and what it shares with others.
class http_loop {
 public:
  http_loop(std::vector<listen_socket> sockets, std::vector<http_listener> bound, int wake_fd,
            const http_limits& limits, http_handler& handler);
  ~http_loop();

  result<void> start(http_server& server);

  http_letters letters;
  const std::vector<http_listener> bound;
  std::atomic<uint64_t> connections{0}, accepted{0}, requests{0}, refused{0};

 private:
  friend class http_floor;
  void run(http_server& server, std::promise<result<void>> ready);

  std::vector<listen_socket> sockets_;
  const http_limits limits_;
  http_handler& handler_;
  std::thread thread_;
};

}  // namespace lethe
