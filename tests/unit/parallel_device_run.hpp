#pragma once

#include "parallel/device_shard.hpp"
#include "tests/unit/parallel_grid_run.hpp"
#include "tests/unit/parallel_memory_weights.hpp"

namespace lethe::testing {

/// Of a rank of how.ranks, stage after stage.
inline shard_config shard_config_for(const model_weights& weights,
                                     const std::vector<prompt>& prompts, const manner& how,
                                     uint32_t rank = 0) {
  grid_config c = config_for(prompts, how);
  return {
      .part = part_for(weights.shape, how.ranks, rank / how.ranks.tensor, rank % how.ranks.tensor),
      .kv = c.kv,
      .page_tokens = c.page_tokens,
      .pages = c.pages,
      .step_tokens = c.step_tokens,
      .logit_rows = c.logit_rows};
}

inline result<std::unique_ptr<device_weights>> load_on(accelerator& on,
                                                       const model_weights& weights,
                                                       const shard_part& part) {
  return device_weights::load(on, memory_weights(weights), part, {.piece_bytes = 1 << 20});
}

/// One rank that has all.
inline result<std::unique_ptr<device_shard>> shard_on(accelerator& on, const cuda_row& row,
                                                      const model_weights& weights,
                                                      const device_config& config) {
  auto loaded = load_on(on, weights, config.shard.part);
  if (!loaded) return loaded.why();
  return device_shard::make(on, row, *std::move(loaded), config);
}

/// Chunks, then each prompt's last `decodes` tokens one by one: sequences that are still in their
/// chunks keep others company that decode.
inline std::vector<std::unique_ptr<planned>> plan_mixed(const std::vector<prompt>& prompts,
                                                        const manner& how, uint32_t decodes) {
  std::vector<std::unique_ptr<planned>> steps;
  std::vector<uint32_t> done(prompts.size());
  for (;;) {
    auto step = std::make_unique<planned>();
    for (size_t p = 0; p < prompts.size(); ++p) {
      auto all = uint32_t(prompts[p].size()), from = done[p];
      if (from == all) continue;
      uint32_t prefill = all > decodes ? all - decodes : 0;
      uint32_t tokens = from < prefill ? std::min(how.chunk, prefill - from) : 1;
      add_entry(*step, prompts, p, from, tokens, how.page_tokens);
      done[p] += tokens;
    }
    if (step->plan.tokens == 0) return steps;
    steps.push_back(std::move(step));
  }
}

/// Logits of all prompts by a shard on a device.
inline std::vector<logit_rows> run_on_device(device_shard& shard, uint32_t vocab,
                                             const std::vector<std::unique_ptr<planned>>& steps,
                                             size_t prompts) {
  std::vector<logit_rows> all(prompts);
  for (const auto& step : steps) {
    if (auto done = shard.execute(step->plan, step->data(vocab)); !done)
      throw std::runtime_error(done.why().text);
    take_rows(*step, vocab, all);
  }
  return all;
}

}  // namespace lethe::testing
