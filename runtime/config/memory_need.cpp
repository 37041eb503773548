#include "runtime/config/memory_need.hpp"

#include "parallel/device_room.hpp"
#include "parallel/device_shard.hpp"

namespace lethe {

namespace {

constexpr uint64_t pool_bytes_least = uint64_t{256} << 20;  // as the engine's default

/// Parameters of one layer, matrices only: norms and biases are thousandths.
uint64_t layer_parameters(const model_shape& s) {
  uint64_t attention = uint64_t{s.hidden} * s.head_dim * (2 * s.heads + 2 * s.kv_heads);
  return attention + uint64_t{3} * s.hidden * s.ffn;
}

uint64_t pool_bytes(const model_facts& model, const shard_part& part,
                    schema::Batching::Reader batching) {
  if (batching.getKvMemory()) return batching.getKvMemory();
  const kv_need& all = model.kv[size_t(batching.getKv())];
  uint64_t shares = uint64_t{model.shape.layers} * model.shape.kv_heads;
  uint64_t own = uint64_t{part.layers.size()} * part.kv_heads.size();
  return std::max(pool_bytes_least, all.bytes / shares * own);
}

/// What of a model's weights its steps' room depends on. Types are the file's; floats stand for
/// them.
model_weights outline_of(const model_shape& s) {
  model_weights w{.shape = s};
  layer_weights layer{};
  layer.attention.o = {dtype::f32, s.hidden, s.heads * s.head_dim, nullptr};
  layer.mlp.down = {dtype::f32, s.hidden, s.ffn, nullptr};
  w.layers.push_back(layer);
  return w;
}

uint64_t work_bytes(const model_facts& model, const shard_part& part,
                    schema::Batching::Reader batching, arithmetic how) {
  uint64_t page =
      kv_page_bytes(model.shape, part, kv_type(batching.getKv()), batching.getPageTokens());
  shard_config config{.part = part,
                      .page_tokens = batching.getPageTokens(),
                      .pages = uint32_t(pool_bytes(model, part, batching) / page),
                      .step_tokens = batching.getStepTokens(),
                      .logit_rows = std::max<uint32_t>(batching.getRunning(), 64)};
  auto room = device_room::of(outline_of(model.shape), config, how, device_config{}.score_tiles);
  return room.inputs_bytes() + room.buffers_bytes() + room.shared_floats * sizeof(float) +
         device_reserve;
}

}  // namespace

rank_need need_of(const model_facts& model, const shard_part& part,
                  schema::Batching::Reader batching, std::optional<arithmetic> on_device) {
  const model_shape& s = model.shape;
  uint64_t table = uint64_t{s.vocab} * s.hidden;
  uint64_t own = layer_parameters(s) * part.layers.size() / part.tensor_size;
  if (part.first()) own += table;  // any token may come
  if (part.last() && !(s.tied && part.first())) own += table / part.tensor_size;
  double bytes_each = double(model.weight_bytes) / double(std::max<uint64_t>(1, model.parameters));
  return {.weights = uint64_t(double(own) * bytes_each),
          .kv = pool_bytes(model, part, batching),
          .work = on_device ? work_bytes(model, part, batching, *on_device) : 0};
}

}  // namespace lethe
