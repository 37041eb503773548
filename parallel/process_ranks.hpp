#pragma once

#include <functional>

#include "parallel/gloo_communicator.hpp"
#include "parallel/grid.hpp"
#include "parallel/last_word.hpp"

namespace lethe {

/// What one rank of a replica talks through, when each rank is a process of its own.
struct rank_groups {
  std::unique_ptr<communicator> plans;    // from the leader, rank 0, to all
  std::unique_ptr<communicator> results;  // what comes out of the ranks, to the leader
  // What cores compute with; devices have NCCL's, and `ends` to tell each other that these ended.
  std::unique_ptr<communicator> tensor;  // the ranks of its stage
  std::unique_ptr<communicator> world;   // all ranks, stage-major
  std::unique_ptr<communicator> ends;    // all ranks, for whoever makes the rank
  std::shared_ptr<group_fate> fate;      // of all groups

  uint32_t rank() const { return plans->rank(); }
  void abort();
  void wipe();
};

enum class rank_kind : uint8_t { cores, device };

/// Joins those that a rank of the kind needs. `base` is of the world; who does not lead waits for
/// plans as long as none come, for everything else as long as `base` says.
result<rank_groups> join_rank_groups(const gloo_config& base, const cut& ranks, rank_store& store,
                                     rank_kind kind = rank_kind::cores);

/// Makes this process's rank, from weights that outlive it if it is on cores.
using rank_maker = std::function<result<std::unique_ptr<step_rank>>(
    const model_weights& weights, const shard_config& config, rank_groups& groups)>;
/// On this host's cores.
result<std::unique_ptr<step_rank>> make_shard(const model_weights& weights,
                                              const shard_config& config, rank_groups& groups);

/// A replica whose ranks are processes. This one leads: it computes rank 0 and tells the others
/// what to do. One thread drives it.
class process_ranks final : public step_ranks {
 public:
  /// `spin`: this rank's threads may wait busily.
  static result<std::unique_ptr<process_ranks>> start(const model_weights& weights,
                                                      const grid_config& config, rank_groups groups,
                                                      bool spin,
                                                      const rank_maker& make = make_shard);
  /// The other ranks end, too.
  ~process_ranks() override;

  /// Steps that may be in flight at once: one per pipeline stage.
  uint32_t depth() const;
  void submit(const step_plan& plan, const step_data& data) override;
  /// After an error all ranks have stopped, or will as soon as they notice.
  result<void> wait_oldest() override;
  /// As its own rank does.
  bool draws() const override;
  /// Those of its own rank.
  uint32_t idle() const override;
  void run_idle(const work& f) override;
  /// From any thread.
  void abort();

 private:
  struct parts;
  explicit process_ranks(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

/// Every other rank: does what the leader plans until that ends it, or until something fails.
/// Nothing of any request is left afterwards.
result<void> serve_rank(const model_weights& weights, const grid_config& config, rank_groups groups,
                        bool spin, const rank_maker& make = make_shard);

}  // namespace lethe
