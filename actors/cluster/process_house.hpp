#pragma once

#include <csignal>

#include <atomic>
#include <list>
#include <mutex>
#include <thread>

#include "actors/cluster/node.hpp"
#include "actors/cluster/supervisor.hpp"

namespace lethe {

/// Where a process finds the directory.
struct directory_address {
  std::string address;
  uint16_t port = 0;
  std::string leader;  // whose certificate it shows
};

/// Engines as processes of their own, which may die without taking anyone along. A child that
/// loses this process ends by itself.
class process_house final : public engine_house {
 public:
  process_house(directory_address directory, node_tls tls)
      : directory_(std::move(directory)), tls_(std::move(tls)) {}
  ~process_house() override;

  result<void> start(const wire<schema::StartEngine>& order, uint16_t id, directory_actor directory,
                     ended then) override;
  void kill(uint16_t id) override;

 private:
  struct waiter {
    std::thread thread;
    std::atomic<bool> done{false};
  };
  void join_waiters();
  siginfo_t wait_for(uint16_t id, int pid);

  directory_address directory_;
  node_tls tls_;
  std::mutex lock_;
  std::map<uint16_t, int> running_;  // pids, not reaped
  std::list<waiter> waiters_;
};

/// What such a process runs; its exit status.
int run_engine_process(const directory_address& directory, const node_tls& tls);

}  // namespace lethe
