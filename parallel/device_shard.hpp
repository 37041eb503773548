#pragma once

#include <memory>
#include <span>

#include "parallel/accelerator.hpp"
#include "parallel/shard.hpp"

namespace lethe {

struct device_config {
  /// `part` is all of the model; only what is said of pages and steps counts.
  shard_config shard;
  /// Decodes are queued as graphs made for 1, 2, 4 ... sequences, with runs of no tokens in the
  /// places that are left.
  bool graphs = true;
  /// Tiles of keys whose scores there is room for, in all heads (the longest context fits in any
  /// case): decodes that see more take turns.
  /// 64 requests of 4096 tokens; 32 MiB where a model has 32 heads.
  uint32_t score_tiles = 4096;
};

/// A whole model on one device: its weights, its key/value pages and its scratch lie there. Gives
/// the bits of `shard`. Memory is taken and decode graphs are made at the start; a step queues
/// work, waits once, for its logits, and takes no memory.
class device_shard {
 public:
  /// The device outlives the shard; the weights need not.
  static result<std::unique_ptr<device_shard>> make(accelerator& on, const cuda_row& row,
                                                    const model_weights& weights,
                                                    const device_config& config);
  /// Wipes.
  ~device_shard();

  /// As shard::execute. After an error of the device nothing that lies there is known to be wiped:
  /// the process that holds it has to end.
  result<void> execute(const step_plan& plan, const step_data& data);

  /// For tests and the audit: what lies on the device.
  std::span<std::byte> pool() const;
  std::span<std::byte> scratch() const;
  size_t page_bytes() const;
  uint32_t graphs() const;

 private:
  struct parts;
  explicit device_shard(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

}  // namespace lethe
