#pragma once

#include <atomic>

#include "tests/e2e/cluster.hpp"

namespace lethe {

struct outcomes {
  std::atomic<uint64_t> whole{0}, retryable{0}, cut{0}, other{0};
  std::atomic<int> slowest_ms{0};
};

/// A stream is whole with its [DONE]; an error inside it says so in JSON, and may be asked again.
inline void count(outcomes& o, const http_said& said, bool streamed) {
  bool ended = streamed ? said.body.ends_with("data: [DONE]\n\n")
                        : said.body.find("\"usage\"") != std::string::npos;
  if (said.status == 200 && ended)
    ++o.whole;
  else if (said.status == 503 || said.status == 429 ||
           (said.status == 200 && said.body.find("\"engine_lost\"") != std::string::npos))
    ++o.retryable;
  else if (said.status == 200)
    ++o.cut;
  else
    ++o.other;
}

/// Clients that ask one request after the other, every second one for a stream.
class load {
 public:
  load(uint16_t port, int clients, uint32_t max_tokens) {
    for (int i = 0; i < clients; ++i)
      threads_.emplace_back([this, port, max_tokens, streamed = i % 2 == 0] {
        auto body = completion(max_tokens, streamed ? R"(,"stream":true)" : "");
        while (!stop_) {
          auto begun = test_clock::now();
          count(seen, http_ask(port, "/v1/completions", body), streamed);
          std::chrono::duration<double, std::milli> took = test_clock::now() - begun;
          if (int(took.count()) > seen.slowest_ms) seen.slowest_ms = int(took.count());
        }
      });
  }
  ~load() { end(); }
  void end() {
    stop_ = true;
    for (auto& t : threads_) t.join();
    threads_.clear();
  }
  outcomes seen;

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace lethe
