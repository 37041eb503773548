#include "parallel/cut.hpp"

#include <string>

namespace lethe {
namespace {

std::string divisors_of(uint32_t n) {
  std::string all;
  for (uint32_t d = 1; d <= n; ++d)
    if (n % d == 0) all += (all.empty() ? "" : ", ") + std::to_string(d);
  return all;
}

}  // namespace

result<void> check_cut(const model_shape& shape, const cut& c) {
  if (c.tensor == 0) return fail("--tensor 0: at least one rank is needed");
  if (c.pipeline == 0) return fail("--pipeline 0: at least one stage is needed");
  if (shape.kv_heads == 0 || shape.heads % shape.kv_heads != 0)
    return fail("model: {} heads and {} key/value heads; the latter must divide the former",
                shape.heads, shape.kv_heads);
  if (shape.heads % c.tensor != 0)
    return fail("--tensor {}: the model has {} heads; tensor must divide them: {}", c.tensor,
                shape.heads, divisors_of(shape.heads));
  if (c.pipeline > shape.layers)
    return fail("--pipeline {}: the model has {} layers; every stage needs one: 1 to {}",
                c.pipeline, shape.layers, shape.layers);
  if (uint64_t{c.tensor} * c.pipeline > ranks_max)
    return fail("--tensor {} --pipeline {}: that is more than {} ranks; use fewer", c.tensor,
                c.pipeline, ranks_max);
  return {};
}

shard_part part_for(const model_shape& shape, const cut& c, uint32_t stage, uint32_t tensor_rank) {
  check(tensor_rank < c.tensor && stage < c.pipeline);
  shard_part p{};
  p.tensor_rank = tensor_rank;
  p.tensor_size = c.tensor;
  p.stage = stage;
  p.stages = c.pipeline;
  p.layers = part_of(shape.layers, stage, c.pipeline);
  p.heads = part_of(shape.heads, tensor_rank, c.tensor);
  uint32_t group = shape.heads / shape.kv_heads;
  p.kv_heads = {p.heads.begin / group, (p.heads.end - 1) / group + 1};
  // Where down is cut along K, its blocks divide by the ranks, and this is a block's edge.
  p.ffn = part_of(shape.ffn, tensor_rank, c.tensor);
  p.vocab = panels_of(shape.vocab, tensor_rank, c.tensor);
  return p;
}

}  // namespace lethe
