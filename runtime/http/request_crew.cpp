#include "runtime/http/request_crew.hpp"

namespace lethe {

request_crew::request_crew(uint32_t threads, uint32_t waiting_max, answerer answer)
    : waiting_max_(waiting_max), answer_(std::move(answer)) {
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

void request_crew::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (auto& t : threads_)
    if (t.joinable()) t.join();
  std::lock_guard lock(mutex_);
  waiting_.clear();
}

bool request_crew::put(http_server& from, http_request r) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || waiting_.size() >= waiting_max_) return false;
    waiting_.push_back({from, std::move(r)});
  }
  ready_.notify_one();
  return true;
}

void request_crew::drop(uint64_t id) {
  std::list<job> gone;  // wiped without the lock
  std::lock_guard lock(mutex_);
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at)
    if (at->request.id == id) return gone.splice(gone.end(), waiting_, at);
}

void request_crew::run() {
  std::list<job> mine;
  std::unique_lock lock(mutex_);
  while (true) {
    ready_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    mine.splice(mine.end(), waiting_, waiting_.begin());
    lock.unlock();
    answer_(mine.front().from, mine.front().request);
    mine.clear();
    lock.lock();
  }
}

}  // namespace lethe
