#include "parallel/rank_need.hpp"

#include <initializer_list>

#include "parallel/decode_graphs.hpp"
#include "parallel/device_shard.hpp"

namespace lethe {
namespace {

/// What device_stage queues of a step of decodes, counted. A test holds the two against each other.
class node_count {
 public:
  node_count(const model_weights& weights, const shard_part& part, const device_room& room)
      : weights_(weights), part_(part), parts_(weights.shape, part), room_(room) {}

  uint64_t of_step(uint32_t decodes, uint32_t tiles) const {
    uint64_t nodes = 1 + (part_.last() ? head() : 1);  // enters, leaves
    for (uint32_t i = part_.layers.begin; i < part_.layers.end; ++i)
      nodes += attention(i, decodes) + kernels_of_turn() * turns(i, decodes, tiles) +
               feed_forward(weights_.layers[i].mlp, decodes);
    return nodes;
  }

 private:
  static uint64_t one_if(bool queued) { return queued ? 1 : 0; }

  /// Of products of the same rows.
  static uint64_t products(std::initializer_list<dtype> types, uint32_t decodes) {
    uint64_t kernels = 0;
    const dtype* before = nullptr;
    for (const dtype& t : types) {
      const bool alone = !is_float(t) && decodes > quantized_together;
      kernels += one_if(before == nullptr || *before != t || alone);
      before = &t;
    }
    return kernels;
  }
  uint64_t attention(uint32_t layer, uint32_t decodes) const {
    const attention_weights& a = weights_.layers[layer].attention;
    const bool quantizes = parts_.along_k(a.o) && !is_float(a.o.type);
    return 1 + products({a.q.type, a.k.type, a.v.type}, decodes) + 1 + one_if(quantizes) +
           join(a.o);
  }
  /// Spans and what joins them, and scores of their own where those are kept.
  uint64_t kernels_of_turn() const { return keeps_scores(room_.how, room_.head_dim) ? 3 : 2; }
  uint64_t turns(uint32_t layer, uint32_t decodes, uint32_t tiles) const {
    const auto& windows = weights_.shape.window;
    size_t fit =
        room_.decodes_at_once(tiles_in(layer < windows.size() ? windows[layer] : 0, tiles));
    return (decodes + fit - 1) / fit;
  }
  uint64_t feed_forward(const mlp_weights& m, uint32_t decodes) const {
    return 1 + products({m.gate.type, m.up.type}, decodes) + 1 + join(m.down);
  }
  /// A product whose K is spread over ranks, and what of it goes between them.
  uint64_t join(const matrix& m) const {
    if (parts_.along_k(m)) return part_.tensor_size == 1 ? 1 : 3;
    return 5 + one_if(!is_float(m.type));
  }
  uint64_t head() const {
    uint64_t own = 2;
    if (part_.tensor_size == 1) return own;
    return own + (part_.tensor_rank == 0 ? part_.tensor_size - 1 + 1 : 1);
  }

  const model_weights& weights_;
  const shard_part& part_;
  const weight_parts parts_;
  const device_room& room_;
};

}  // namespace

uint64_t graph_nodes(const model_weights& weights, const shard_part& part,
                     const device_room& room) {
  const node_count count(weights, part, room);
  uint64_t nodes = 0;
  for (uint32_t decodes : decode_graphs::buckets(uint32_t(room.logit_rows)))
    for (uint32_t tiles : decode_graphs::buckets(room.tiles))
      nodes += count.of_step(decodes, tiles);
  return nodes;
}

/// A ring's two, logits to the first tensor rank, rows from stage to stage.
uint32_t nccl_ways(const shard_part& part) {
  uint32_t ways = (part.first() ? 0 : 1) + (part.last() ? 0 : 1);
  if (part.tensor_size == 1) return ways;
  uint32_t logits = !part.last() ? 0 : part.tensor_rank == 0 ? part.tensor_size - 1 : 1;
  return ways + 2 + logits;
}

rank_need device_need(const model_weights& weights, const shard_config& config, arithmetic how) {
  const shard_part& part = config.part;
  const auto room = device_room::of(weights, config, how, device_config{}.score_tiles);
  const kv_layout layout{part.layers.size(), part.kv_heads.size(), weights.shape.head_dim,
                         config.page_tokens, config.kv};
  const nccl_staging staging;
  return {.weights = device_weights::bytes_of(weights, part),
          .kv = config.pages * layout.page_bytes(),
          .steps = room.inputs_bytes() + room.buffers_bytes() + room.shared_bytes(),
          .graphs = graph_nodes(weights, part, room) * graph_node_bytes,
          .nccl = nccl_ways(part) * staging.channels * staging.way_bytes(),
          .context = device_context_bytes};
}

}  // namespace lethe
