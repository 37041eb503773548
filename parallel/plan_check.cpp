#include "parallel/plan_check.hpp"

#include <algorithm>

namespace lethe {
namespace {

result<void> check_entry(const step_plan& plan, const plan_entry& e, const shard_config& config) {
  if (e.tokens == 0 || e.logit_rows > e.tokens)
    return fail("step {}: an entry of {} tokens asks for {} logit rows", plan.id, e.tokens,
                e.logit_rows);
  if (uint64_t{e.first_page} + e.page_count > plan.pages.size())
    return fail("step {}: an entry's page table lies outside the plan's", plan.id);
  if (uint64_t{e.position} + e.tokens > uint64_t{e.page_count} * config.page_tokens)
    return fail("step {}: {} pages of {} tokens do not hold tokens {} to {}", plan.id, e.page_count,
                config.page_tokens, e.position, uint64_t{e.position} + e.tokens);
  return {};
}

result<void> check_entries(const step_plan& plan, const shard_config& config) {
  uint64_t tokens = 0, logit_rows = 0;
  for (const plan_entry& e : plan.entries) {
    if (auto fits = check_entry(plan, e, config); !fits) return fits;
    if (e.first_token != tokens || (e.logit_rows != 0 && e.first_logit_row != logit_rows))
      return fail("step {}: entries do not lie back to back", plan.id);
    tokens += e.tokens;
    logit_rows += e.logit_rows;
  }
  if (tokens != plan.tokens || logit_rows != plan.logit_rows)
    return fail("step {}: entries have {} tokens and {} logit rows, the plan {} and {}", plan.id,
                tokens, logit_rows, plan.tokens, plan.logit_rows);
  return {};
}

result<void> check_pages(const step_plan& plan, const shard_config& config) {
  auto known = [&](uint32_t page) { return page < config.pages; };
  bool all =
      std::ranges::all_of(plan.pages, known) && std::ranges::all_of(plan.wipes, known) &&
      std::ranges::all_of(plan.copies, [&](const page_copy& c) {
        return known(c.from) && known(c.to) && c.from != c.to && c.tokens <= config.page_tokens;
      });
  if (!all) return fail("step {}: a page is not one of the shard's {}", plan.id, config.pages);
  return {};
}

bool is_within(float x, float low, float high) { return x >= low && x <= high; }

/// As check_sampling has it; NaN is within nothing.
bool can_be_drawn(const row_draw& d) {
  return is_within(d.temperature, 0, draw_temperature_max) && is_within(d.typical_p, 0, 1) &&
         d.typical_p > 0 && is_within(d.top_p, 0, 1) && d.top_p > 0 && is_within(d.min_p, 0, 1) &&
         d.u >= 0 && d.u < 1;
}

result<void> check_draws(const step_plan& plan) {
  uint64_t next = 0;
  for (const row_draw& d : plan.draws) {
    if (d.row < next || d.row >= plan.logit_rows)
      return fail("step {}: a draw from row {} of {}, after row {}", plan.id, d.row,
                  plan.logit_rows, int64_t(next) - 1);
    if (!can_be_drawn(d))
      return fail("step {}: row {} is to be drawn by numbers out of range", plan.id, d.row);
    next = uint64_t{d.row} + 1;
  }
  return {};
}

}  // namespace

result<void> check_plan(const step_plan& plan, const step_data& data, const shard_config& config,
                        uint32_t vocab) {
  if (plan.tokens > config.step_tokens || plan.logit_rows > config.logit_rows)
    return fail("step {}: {} tokens and {} logit rows; the shard takes {} and {}", plan.id,
                plan.tokens, plan.logit_rows, config.step_tokens, config.logit_rows);
  if (auto fits = check_entries(plan, config); !fits) return fits;
  if (auto fits = check_pages(plan, config); !fits) return fits;
  if (auto fits = check_draws(plan); !fits) return fits;
  const shard_part& part = config.part;
  if (part.first() && plan.tokens != 0) {
    if (data.token_ids == nullptr) return fail("step {}: no token ids", plan.id);
    if (!std::all_of(data.token_ids, data.token_ids + plan.tokens,
                     [vocab](uint32_t id) { return id < vocab; }))
      return fail("step {}: a token id is not in the vocabulary of {}", plan.id, vocab);
  }
  if (part.last() && part.tensor_rank == 0 && plan.logit_rows != 0 && data.logits == nullptr)
    return fail("step {}: no room for logits", plan.id);
  if (part.last() && part.tensor_rank == 0 && !plan.draws.empty() && data.drawn == nullptr)
    return fail("step {}: no room for what is drawn", plan.id);
  return {};
}

}  // namespace lethe
