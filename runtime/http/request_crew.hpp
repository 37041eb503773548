#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/http/http_server.hpp"

namespace lethe {

/// Threads that answer requests in turn; a bounded number of requests may wait for them.
class request_crew {
 public:
  using answerer = std::function<void(http_server&, http_request&)>;
  request_crew(uint32_t threads, uint32_t waiting_max, answerer answer);
  ~request_crew() { stop(); }
  request_crew(const request_crew&) = delete;
  request_crew& operator=(const request_crew&) = delete;

  /// False if too many wait, or after `stop`.
  [[nodiscard]] bool put(http_server& from, http_request r);
  /// Its client has left: nothing, if it was begun.
  void drop(uint64_t id);
  /// Returns when what was begun is answered; what waits is dropped.
  void stop();

 private:
  struct job {
    http_server& from;
    http_request request;
  };
  void run();

  const uint32_t waiting_max_;
  const answerer answer_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::list<job> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // last: they use all the others
};

}  // namespace lethe
