#pragma once

#include <vector>

#include "kernels/cpu_row.hpp"
#include "parallel/region.hpp"
#include "parallel/step_plan.hpp"

namespace lethe {

struct model_weights;
struct shard_config;

/// Query tokens that one attention item takes: enough to read a key many times while it is near.
inline constexpr uint32_t attention_block = 32;
constexpr uint32_t attention_blocks(uint32_t tokens) {
  return (tokens + attention_block - 1) / attention_block;
}

/// A decode whose keys for one head are more than one of so many parts of a thread's share of a
/// step's attention is summed span by span.
inline constexpr uint32_t parts_of_thread = 4;

/// The activations of one step. [rows][columns], rows back to back.
struct buffers {
  /// The residual stream. A stage that sends one works on in the other meanwhile; the last stage
  /// keeps the rows that become logits in the second.
  float* x[2];
  float* normed;
  float *q, *k, *v, *attended;
  float *gate, *up;
  float* joined;    // what o and down give
  float* gathered;  // all ranks' columns, rank after rank; only where a K is not cut
  float* wide;      // the same as rows
  float *cosines, *sines;
  x_unit* units;
  x_rounded* rounded;  // only where a row rounds x
  float* logits;       // columns on their way to tensor rank 0
  float* attention;    // per thread
  size_t attention_floats;
  float* spans;      // of decodes whose spans several threads sum
  size_t span_room;  // floats
};

/// All memory of a shard, other than pages, that derives from requests. Wipes as far as it was
/// touched, and the rest was never touched.
class scratch {
 public:
  static result<scratch> make(const model_weights& weights, const shard_config& config);
  scratch(scratch&&) = default;
  ~scratch();

  const buffers& get() const { return buffers_; }
  bytes_view view() const { return memory_.view(); }

  /// Says that a step is about to use it.
  void touch(const step_plan& plan);
  /// One thread's part of wiping; when all have done theirs, `wiped`.
  void wipe(uint32_t thread, uint32_t threads);
  void wiped() { touched_ = {}; }

 private:
  enum class unit : uint8_t { token, logit_row, step };
  struct extent {
    unit per;
    size_t offset, unit_bytes;
  };
  struct touched_units {
    size_t count[3] = {};
  };
  struct sizes;

  scratch() = default;
  void lay_out(const sizes& s);

  std::vector<extent> extents_;
  region memory_;
  buffers buffers_{};
  touched_units touched_;
};

}  // namespace lethe
