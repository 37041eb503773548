#pragma once

#include <memory>
#include <span>

#include "parallel/device_weights.hpp"
#include "parallel/nccl_world.hpp"
#include "parallel/shard.hpp"

namespace lethe {

struct device_config {
  /// The part, and what is said of pages and steps.
  shard_config shard;
  /// Decodes are queued as graphs made for 1, 2, 4 ... sequences, with runs of no tokens in the
  /// places that are left.
  bool graphs = true;
  /// Tiles of keys whose scores there is room for, in all heads (the longest context fits in any
  /// case): decodes that see more take turns.
  /// 64 requests of 4096 tokens; 32 MiB where a model has 32 heads, besides their spans.
  uint32_t score_tiles = 4096;
};

/// One rank's part of a model on a device: its weights, its key/value pages and its scratch lie
/// there. Gives the bits of `shard`, if the row does. Memory is taken and decode graphs are made at
/// the start; a step queues work, waits once, and takes no memory.
class device_shard {
 public:
  /// `world` joins the ranks of the cut, whose calls of this and of `execute` are the same; null:
  /// one rank has all. They come to it within the world's timeout of each other. It and the device
  /// outlive the shard. Whoever fails ends the world, so that nobody waits for it.
  static result<std::unique_ptr<device_shard>> make(accelerator& on, const cuda_row& row,
                                                    std::unique_ptr<device_weights> weights,
                                                    const device_config& config,
                                                    nccl_world* world = nullptr);
  /// Wipes what is this rank's, and meets no other: what NCCL staged went with the last plan that
  /// said so, or goes with the world.
  ~device_shard();

  /// As shard::execute. Every error but a lone rank's refused plan is final. After an error of the
  /// device nothing that lies there is known to be wiped: the process that holds it has to end.
  result<void> execute(const step_plan& plan, const step_data& data);

  /// For tests and the audit: what lies on the device; `shared` is what collectives work on.
  std::span<std::byte> pool() const;
  std::span<std::byte> scratch() const;
  std::span<std::byte> shared() const;
  size_t page_bytes() const;
  uint32_t graphs() const;

 private:
  struct parts;
  explicit device_shard(std::unique_ptr<parts> p);
  static result<std::unique_ptr<device_shard>> start(accelerator& on, const cuda_row& row,
                                                     std::unique_ptr<device_weights> weights,
                                                     const device_config& config, nccl_world* world,
                                                     std::span<std::byte> shared);
  std::unique_ptr<parts> parts_;
};

}  // namespace lethe
