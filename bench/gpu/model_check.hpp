#pragma once

#include "bench/gpu/random_weights.hpp"
#include "parallel/device_shard.hpp"

namespace lethe::bench {

/// Of a few steps with all that steps have: a prompt, another beside a decode, decodes as graphs.
/// Rows of the vocabulary, back to back.
result<std::vector<float>> logits_on_cores(const held_weights& weights, uint32_t threads);
result<std::vector<float>> logits_on_device(accelerator& on, const cuda_row& row,
                                            const random_weights& weights);

/// The same bits, if the arithmetic is exact; else within tensor_share of a row's largest logit.
bool are_right(arithmetic how, dtype weights, const std::vector<float>& got,
               const std::vector<float>& want, uint32_t vocab);

}  // namespace lethe::bench
