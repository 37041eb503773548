#pragma once

#include <algorithm>
#include <deque>

#include "parallel/grid.hpp"

namespace lethe::testing {

using prompt = std::vector<uint32_t>;
using logit_rows = std::vector<std::vector<float>>;  // [token][vocab]

/// How prompts are put through a grid.
struct manner {
  cut ranks;
  uint32_t threads = 1, page_tokens = 16, chunk = 1000;
  kv_type kv = kv_type::f32;
  const cpu_row* row = &best_cpu_row();
  bool wipes = false;  // scratch, before two of three steps
};

/// A model for cuts up to 4 x 2 or 2 x 4.
inline model_shape small_shape(uint32_t layers, uint32_t ffn) {
  model_shape s;
  s.family = "llama";
  s.layers = layers, s.hidden = 64, s.heads = 8, s.kv_heads = 4, s.head_dim = 16, s.ffn = ffn;
  s.vocab = 53, s.context_max = 256;
  s.rope.rotary = 16;
  return s;
}

inline prompt random_prompt(uint32_t tokens, uint32_t vocab, uint32_t seed) {
  prompt ids;
  for (uint32_t i = 0; i < tokens; ++i) ids.push_back((seed = seed * 1664525 + 1013904223) % vocab);
  return ids;
}

/// Everything at once that a family may have; the last layer's window.
inline model_shape rich_shape(uint32_t last_window) {
  model_shape s = small_shape(3, 96);
  s.qkv_bias = s.o_bias = s.mlp_bias = s.qk_norm = s.tied = true;
  s.rope.rotary = 8;
  s.rope.scaling = rope_scaling::yarn, s.rope.factor = 4, s.rope.original_context = 32;
  s.window = {0, 5, last_window};
  return s;
}

/// One of that many tokens, one of one token, one of some.
inline std::vector<prompt> some_prompts(uint32_t vocab, uint32_t longest) {
  return {random_prompt(longest, vocab, 1), random_prompt(1, vocab, 2),
          random_prompt(18, vocab, 3)};
}

/// A step with its memory, ready to be submitted.
struct planned {
  step_plan plan;
  std::vector<uint32_t> ids;
  std::vector<float> logits;
  std::vector<uint32_t> drawn = {};
  step_data data(uint32_t vocab) {
    logits.assign(size_t{plan.logit_rows} * vocab, -1e30f);
    drawn.assign(plan.draws.size(), UINT32_MAX);
    return {ids.data(), logits.data(), drawn.data()};
  }
};

/// Pages of prompt p are p, p + n, p + 2n, ...: never neighbours.
inline void add_entry(planned& step, const std::vector<prompt>& prompts, size_t p, uint32_t from,
                      uint32_t tokens, uint32_t page_tokens) {
  step_plan& plan = step.plan;
  uint32_t pages = (from + tokens + page_tokens - 1) / page_tokens;
  plan.entries.push_back({.sequence = uint32_t(p),
                          .position = from,
                          .tokens = tokens,
                          .first_token = plan.tokens,
                          .first_page = uint32_t(plan.pages.size()),
                          .page_count = pages,
                          .logit_rows = tokens,
                          .first_logit_row = plan.logit_rows});
  for (uint32_t i = 0; i < pages; ++i) plan.pages.push_back(uint32_t(p + i * prompts.size()));
  step.ids.insert(step.ids.end(), prompts[p].begin() + from, prompts[p].begin() + from + tokens);
  plan.tokens += tokens;
  plan.logit_rows += tokens;
}

inline std::vector<std::unique_ptr<planned>> plan_all(const std::vector<prompt>& prompts,
                                                      const manner& how) {
  std::vector<std::unique_ptr<planned>> steps;
  for (uint32_t from = 0;; from += how.chunk) {
    auto step = std::make_unique<planned>();
    for (size_t p = 0; p < prompts.size(); ++p)
      if (from < prompts[p].size())
        add_entry(*step, prompts, p, from, std::min(how.chunk, uint32_t(prompts[p].size()) - from),
                  how.page_tokens);
    if (step->plan.tokens == 0) return steps;
    steps.push_back(std::move(step));
  }
}

inline grid_config config_for(const std::vector<prompt>& prompts, const manner& how) {
  uint32_t longest = 0, tokens = 0;
  for (const prompt& p : prompts)
    longest = std::max(longest, uint32_t(p.size())), tokens += uint32_t(p.size());
  uint32_t pages = (longest / how.page_tokens + 1) * uint32_t(prompts.size());
  return {.ranks = how.ranks,
          .row = how.row,
          .threads = how.threads,
          .kv = how.kv,
          .page_tokens = how.page_tokens,
          .pages = pages,
          .step_tokens = tokens,
          .logit_rows = tokens};
}

/// A step's logits, behind those of its sequences' earlier tokens.
inline void take_rows(const planned& step, uint32_t vocab, std::vector<logit_rows>& all) {
  for (const plan_entry& e : step.plan.entries)
    for (uint32_t i = 0; i < e.tokens; ++i) {
      auto row = step.logits.begin() + size_t{e.first_logit_row + i} * vocab;
      all[e.sequence].emplace_back(row, row + vocab);
    }
}

/// Logits of all prompts, computed together, with as many steps in flight as the ranks take.
inline std::vector<logit_rows> run_on(step_ranks& ranks, uint32_t depth, uint32_t vocab,
                                      const std::vector<prompt>& prompts, const manner& how) {
  auto steps = plan_all(prompts, how);
  std::vector<logit_rows> all(prompts.size());
  auto take = [&](const planned& step) {
    if (auto done = ranks.wait_oldest(); !done) throw std::runtime_error(done.why().text);
    take_rows(step, vocab, all);
  };
  size_t taken = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i - taken == depth) take(*steps[taken++]);
    steps[i]->plan.wipe_scratch = how.wipes && i % 3 != 0;
    ranks.submit(steps[i]->plan, steps[i]->data(vocab));
  }
  while (taken < steps.size()) take(*steps[taken++]);
  return all;
}

inline std::vector<logit_rows> run(const model_weights& weights, const std::vector<prompt>& prompts,
                                   const manner& how) {
  auto g = grid::start(weights, config_for(prompts, how));
  if (!g) throw std::runtime_error(g.why().text);
  return run_on(**g, (*g)->depth(), weights.shape.vocab, prompts, how);
}

}  // namespace lethe::testing
