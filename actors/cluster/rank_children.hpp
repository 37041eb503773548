#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "actors/cluster/node.hpp"
#include "runtime/base/owned_fd.hpp"
#include "runtime/wire/message_limits.hpp"

namespace lethe {

/// The ranks of a host that one process there has started, beside its own.
class rank_children {
 public:
  using ended = std::function<void(uint32_t rank, const std::string& how)>;
  /// `then` is called from any thread, once for each.
  explicit rank_children(ended then) : then_(std::move(then)) {}
  /// Ranks end when their leader has told them; who doesn't is killed.
  ~rank_children();
  rank_children(const rank_children&) = delete;

  /// `weights`: the memory of those that it maps; none: it loads its own.
  result<void> add(uint32_t rank, const wire<schema::StartRanks>& order, const node_tls& tls,
                   std::optional<int> weights);

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
