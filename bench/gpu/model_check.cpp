#include "bench/gpu/model_check.hpp"

#include <cstring>

#include "parallel/local_communicator.hpp"
#include "tests/unit/near_logits.hpp"

namespace lethe {
extern const cpu_row reference;
}

namespace lethe::bench {
namespace {

constexpr uint32_t page_tokens = 16, pages = 6, first_tokens = 21, second_tokens = 9;
constexpr kv_type kv = kv_type::bf16;

shard_config config_of(const model_shape& shape, uint32_t threads) {
  return {.part = part_for(shape, {}, 0, 0),
          .row = &reference,
          .threads = threads,
          .spin = false,
          .kv = kv,
          .page_tokens = page_tokens,
          .pages = pages,
          .step_tokens = first_tokens,
          .logit_rows = 2};
}

/// Sequence s has every second page from the s-th on, and one logit row a step.
void add(step_plan& plan, uint32_t sequence, uint32_t position, uint32_t tokens) {
  uint32_t table = (position + tokens + page_tokens - 1) / page_tokens;
  plan.entries.push_back({.sequence = sequence,
                          .position = position,
                          .tokens = tokens,
                          .first_token = plan.tokens,
                          .first_page = uint32_t(plan.pages.size()),
                          .page_count = table,
                          .logit_rows = 1,
                          .first_logit_row = plan.logit_rows});
  for (uint32_t i = 0; i < table; ++i) plan.pages.push_back(sequence + 2 * i);
  plan.tokens += tokens;
  plan.logit_rows += 1;
}

std::vector<step_plan> some_steps() {
  std::vector<step_plan> steps(4);
  for (size_t i = 0; i < steps.size(); ++i) steps[i].id = i + 1;
  add(steps[0], 0, 0, first_tokens);
  add(steps[1], 0, first_tokens, 1);
  add(steps[1], 1, 0, second_tokens);
  for (uint32_t i : {0u, 1u}) {
    add(steps[2 + i], 0, first_tokens + 1 + i, 1);
    add(steps[2 + i], 1, second_tokens + i, 1);
  }
  return steps;
}

/// On a shard of either kind.
template <class Shard>
result<std::vector<float>> logits_of(Shard& shard, uint32_t vocab) {
  std::vector<float> all;
  uint32_t id = 1;
  for (const step_plan& plan : some_steps()) {
    std::vector<uint32_t> ids(plan.tokens);
    for (uint32_t& each : ids) each = (id = id * 1664525 + 1013904223) % vocab;
    std::vector<float> rows(size_t{plan.logit_rows} * vocab);
    auto done = shard.execute(plan, {.token_ids = ids.data(), .logits = rows.data()});
    if (!done) return done.why();
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace

result<std::vector<float>> logits_on_cores(const held_weights& held, uint32_t threads) {
  const model_shape& shape = held.weights.shape;
  auto alone = make_local_group(1, false), world = make_local_group(1, false);
  auto made = shard::make(held.weights, config_of(shape, threads), *alone[0], *world[0]);
  if (!made) return made.why();
  return logits_of(**made, shape.vocab);
}

result<std::vector<float>> logits_on_device(accelerator& on, const cuda_row& row,
                                            const random_weights& weights) {
  const model_shape& shape = weights.weights().shape;
  shard_config config = config_of(shape, 1);
  auto loaded = device_weights::load(on, weights, config.part, {.piece_bytes = 1 << 20});
  if (!loaded) return loaded.why();
  auto made = device_shard::make(on, row, *std::move(loaded), {.shard = config});
  if (!made) return made.why();
  return logits_of(**made, shape.vocab);
}

bool are_right(arithmetic how, dtype weights, const std::vector<float>& got,
               const std::vector<float>& want, uint32_t vocab) {
  if (got.size() != want.size()) return false;
  if (how == arithmetic::exact)
    return std::memcmp(got.data(), want.data(), got.size() * sizeof(float)) == 0;
  const float share = testing::tensor_share(kv, weights);
  for (size_t row = 0; row < want.size(); row += vocab) {
    auto of = [row, vocab](const std::vector<float>& all) {
      return std::span(all).subspan(row, vocab);
    };
    if (!testing::logit_distance(of(got), of(want)).within(share)) return false;
  }
  return true;
}

}  // namespace lethe::bench
