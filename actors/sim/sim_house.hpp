#pragma once

#include <map>

#include "actors/cluster/engine_actor.hpp"
#include "actors/cluster/supervisor.hpp"
#include "actors/sim/sim_engine.hpp"

namespace lethe::sim {

/// Pages and steps in flight of every engine that is opened.
struct engine_size {
  uint32_t pages = 0;
  uint32_t depth = 1;
};

/// Engines of one host as actors of the simulation. Starts take their time, some fail; all die at
/// once with the host.
class sim_house final : public engine_house {
 public:
  sim_house(caf::actor_system& sys, ledger& facts, tracer* trace, engine_size size)
      : sys_(sys), facts_(facts), trace_(trace), size_(size) {}

  result<void> start(const wire<schema::StartEngine>& order, uint16_t id, directory_actor directory,
                     ended then) override;
  result<void> start_ranks(const wire<schema::StartRanks>& order, uint32_t first, uint16_t id,
                           ended then) override;
  void kill(uint16_t id) override;

  /// Is told of each actor that begins to live here.
  std::function<void(const caf::actor&)> moved_in;
  /// The host dies: nobody is left to tell.
  void die();
  /// Engines that run.
  std::vector<uint16_t> running() const;

 private:
  struct tenant {
    engine_actor engine;  // none: it has not started yet
    ended then;
    bool cancelled = false;
  };
  engine_setup setup_of(const wire<schema::StartEngine>& order);
  void move_in(const std::shared_ptr<tenant>& who, const engine_setup& setup, uint32_t epoch,
               directory_actor directory);

  caf::actor_system& sys_;
  ledger& facts_;
  tracer* trace_;
  engine_size size_;
  std::map<uint16_t, std::shared_ptr<tenant>> tenants_;
};

/// After so long it calls `then` once.
caf::behavior alarm(caf::event_based_actor* self, uint64_t after_us, std::function<void()> then);

}  // namespace lethe::sim
