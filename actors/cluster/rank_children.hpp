#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "actors/cluster/node.hpp"
#include "runtime/base/owned_fd.hpp"
#include "runtime/wire/message_limits.hpp"

namespace lethe {

/// The ranks of a host that one process there has started, beside its own. They map its weights.
class rank_children {
 public:
  using ended = std::function<void(uint32_t rank, const std::string& how)>;
  /// `then` is called from any thread, once for each.
  explicit rank_children(ended then) : then_(std::move(then)) {}
  /// Ranks end when their leader has told them; who doesn't is killed.
  ~rank_children();
  rank_children(const rank_children&) = delete;

  result<void> add(uint32_t rank, const wire<schema::StartRanks>& order, const node_tls& tls,
                   int weights);

 private:
  struct child {
    uint32_t rank;
    int pid;
    owned_fd order;
    bool ended = false;
    std::thread thread;
  };
  void await(child& c);

  const ended then_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<child> all_;
};

}  // namespace lethe
