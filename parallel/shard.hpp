#pragma once

#include <memory>

#include "kernels/cpu_row.hpp"
#include "parallel/communicator.hpp"
#include "parallel/cut.hpp"
#include "parallel/step_rank.hpp"
#include "parallel/step_times.hpp"
#include "parallel/weights.hpp"
#include "runtime/base/bytes.hpp"

namespace lethe {

/// What decodes' spans have room for on a rank, at most: longer ones than that go by fewer threads.
inline constexpr size_t spans_bytes_max = size_t{4} << 20;

struct shard_config {
  shard_part part;
  const cpu_row* row = nullptr;
  uint32_t threads = 1;  // of this rank, its lead included
  bool spin = true;      // false when the process has more ranks and threads than cores
  kv_type kv = kv_type::f32;
  uint32_t page_tokens = 16;
  uint32_t pages = 0;          // of the pool; page ids are the same on every rank
  uint32_t step_tokens = 512;  // most tokens of a step
  uint32_t logit_rows = 64;    // most logit rows of a step
  bool timed = false;          // sums where the time goes
  size_t spans_bytes = spans_bytes_max;
};

/// One device's part of a replica: its share of the weights (views), its key/value pages, its
/// scratch. Executes step plans in order. Everything in pages and scratch derives from requests
/// and is wiped as the plans say, and when the shard ends.
class shard final : public step_rank {
 public:
  /// `tensor` joins the ranks of a stage, `world` all ranks (stage-major: stage * tensor_size +
  /// tensor_rank). These and the weights outlive the shard.
  static result<std::unique_ptr<shard>> make(const model_weights& weights,
                                             const shard_config& config, communicator& tensor,
                                             communicator& world);
  ~shard() override;

  /// On the calling thread and the shard's own.
  result<void> execute(const step_plan& plan, const step_data& data) override;
  /// Before the first step: takes panels of a rank of its stage when it has none left.
  void help(shard& other);
  uint32_t idle() const override;
  void run_idle(const work& f) override;

  /// For tests and the audit: what the pool and the scratch hold right now; a page in its pieces.
  std::vector<bytes_view> page(uint32_t id) const;
  bytes_view scratch() const;
  size_t page_bytes() const;
  const step_times& times() const;

 private:
  struct parts;
  explicit shard(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

/// Bytes of key/value memory that one page takes on this part.
size_t kv_page_bytes(const model_shape& shape, const shard_part& part, kv_type kv,
                     uint32_t page_tokens);

}  // namespace lethe
