#pragma once

#include <atomic>
#include <future>
#include <thread>
#include <variant>
#include <vector>

#include "runtime/http/http_block.hpp"
#include "runtime/http/http_server.hpp"
#include "runtime/http/letter_box.hpp"
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
  struct cut {};
  struct took {
    size_t bytes;
  };
  struct stop {};  // accepting
  struct quit {};
  uint64_t id = 0;
  std::variant<begin, piece, end, cut, took, stop, quit> what;
};

using http_letters = letter_box<http_letter>;

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
