#pragma once

#include "actors/cluster/open_engine.hpp"
#include "actors/cluster/supervisor.hpp"

namespace lethe {

/// Engines as actors of this process, each with a thread of its own.
class thread_house final : public engine_house {
 public:
  thread_house(caf::actor_system& sys, tracer* trace)
      : sys_(sys), trace_(trace), opener_(std::make_shared<engine_opener>()) {}
  /// Whoever supervised them is gone.
  ~thread_house() override;

  result<void> start(const wire<schema::StartEngine>& order, uint16_t id, directory_actor directory,
                     ended then) override;
  result<void> start_ranks(const wire<schema::StartRanks>& order, uint32_t first, uint16_t id,
                           ended then) override;
  void kill(uint16_t id) override;

 private:
  caf::actor_system& sys_;
  tracer* trace_;
  std::shared_ptr<engine_opener> opener_;
  // Weak: CAF ends an actor's thread when nobody holds the actor.
  std::map<uint16_t, caf::actor_addr> running_;
};

}  // namespace lethe
