#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <thread>

#include "actors/cluster/node.hpp"
#include "actors/cluster/supervisor.hpp"

namespace lethe {

class devices;

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
  result<void> start_ranks(const wire<schema::StartRanks>& order, uint32_t first, uint16_t id,
                           ended then) override;
  void kill(uint16_t id) override;

 private:
  struct waiter {
    std::thread thread;
    std::atomic<bool> done{false};
  };
  result<void> begin(std::vector<std::string> words, const std::vector<std::byte>& order,
                     uint16_t id, ended then);
  void join_waiters();
  void reap(uint16_t id, int pid);

  directory_address directory_;
  node_tls tls_;
  std::mutex lock_;
  std::map<uint16_t, int> running_;  // pids, not reaped
  std::list<waiter> waiters_;
};

/// How a child hears of its keys.
std::vector<std::string> words_of(const node_tls& tls);

/// What such a process runs; its exit status.
int run_engine_process(const directory_address& directory, const node_tls& tls, devices& here);

}  // namespace lethe
