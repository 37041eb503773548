#include "parallel/weights_read.hpp"

#include "parallel/weight_parts.hpp"

namespace lethe {

std::vector<bytes_view> reads_of(const model_weights& weights, const shard_part& part) {
  const weight_parts parts(weights.shape, part);
  std::vector<bytes_view> all;
  auto add = [&all](const matrix& m, const product_part& p) {
    const weight_piece piece = piece_of(m, p);
    for (size_t i = 0; i < piece.count && piece.bytes != 0; ++i)
      all.emplace_back(piece.from + i * piece.pitch, piece.bytes);
  };
  if (part.first()) add(weights.embed, {0, weights.embed.rows, 0, segments});
  for (uint32_t l = part.layers.begin; l < part.layers.end; ++l) {
    const auto& [a, m] = weights.layers[l];
    add(a.q, parts.q()), add(a.k, parts.kv()), add(a.v, parts.kv());
    add(a.o, parts.spread(a.o));
    add(m.gate, parts.ffn()), add(m.up, parts.ffn()), add(m.down, parts.spread(m.down));
  }
  if (part.last()) add(weights.head, parts.vocab());
  return all;
}

}  // namespace lethe
