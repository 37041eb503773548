#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>

#include "tests/e2e/cluster.hpp"

namespace lethe {

constexpr double noticed_s = 1;  // a machine that does other things, too, notices later

inline double now_s() {
  return std::chrono::duration<double>(test_clock::now().time_since_epoch()).count();
}

/// When a process was made to fail, and until when requests could still be placed on it.
class fault_times {
 public:
  void add(double from, double to) {
    std::lock_guard guard(lock_);
    all_.push_back({from, to});
  }
  /// Whether a request of that time may have been on a process that failed.
  bool touch(double begun, double ended) const {
    std::lock_guard guard(lock_);
    for (auto [from, to] : all_)
      if (begun <= to && ended >= from) return true;
    return false;
  }
  /// For a person: a request's time, and that of the last fault before its end.
  std::string before(double begun, double ended) const {
    std::lock_guard guard(lock_);
    double from = 0, to = 0;
    for (auto [f, t] : all_)
      if (f < ended) std::tie(from, to) = std::pair(f, t);
    return "lost " + std::to_string(ended - from) + " s after a fault, begun " +
           std::to_string(begun - from) + " s after it, expected within " +
           std::to_string(to - from) + " s\n";
  }

 private:
  mutable std::mutex lock_;
  std::vector<std::pair<double, double>> all_;
};

/// unheard: nobody listened, or the connection broke before an answer began.
enum class ending { whole, lost, turned_away, cut, unheard, other };

struct request_seen {
  double begun = 0, ended = 0;
  ending how = ending::other;
};

/// A stream is whole with its [DONE]; an error inside it says so in JSON, and may be asked again.
inline ending ending_of(const http_said& said, bool streamed) {
  bool complete = streamed ? said.body.ends_with("data: [DONE]\n\n")
                           : said.body.find("\"usage\"") != std::string::npos;
  if (said.status == 0) return ending::unheard;
  if (said.status == 200 && complete) return ending::whole;
  if (said.body.find("\"engine_lost\"") != std::string::npos) return ending::lost;
  if (said.status == 503 || said.status == 429) return ending::turned_away;
  return said.status == 200 ? ending::cut : ending::other;
}

/// Clients that ask one request after the other, and wait where they are told to.
class clients {
 public:
  clients(uint16_t api, int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this, api, i] { run(api, i % 2 == 0); });
  }
  ~clients() { end(); }
  /// Waits until so many more have a whole answer.
  bool are_served(size_t more, double within_s = 30) const {
    auto whole = [this] {
      std::lock_guard guard(lock_);
      return std::ranges::count(seen_, ending::whole, &request_seen::how);
    };
    double until = now_s() + within_s;
    auto enough = whole() + ptrdiff_t(more);
    while (whole() < enough && now_s() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return whole() >= enough;
  }
  std::vector<request_seen> end() {
    stop_ = true;
    for (auto& t : threads_) t.join();
    threads_.clear();
    return seen_;
  }

 private:
  void run(uint16_t api, bool streamed) {
    auto body = completion(16, streamed ? R"(,"stream":true)" : "");
    while (!stop_) {
      request_seen r{.begun = now_s()};
      auto said = http_ask(api, "/v1/completions", body);
      r.ended = now_s();
      r.how = ending_of(said, streamed);
      {
        std::lock_guard guard(lock_);
        seen_.push_back(r);
      }
      bool told_to_wait =
          r.how == ending::unheard || said.head.find("Retry-After: 1") != std::string::npos;
      for (int i = 0; told_to_wait && i < 20 && !stop_; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  std::atomic<bool> stop_{false};
  mutable std::mutex lock_;
  std::vector<request_seen> seen_;
  std::vector<std::thread> threads_;
};

}  // namespace lethe
