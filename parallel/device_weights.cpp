#include "parallel/device_weights.hpp"

#include <map>
#include <vector>

namespace lethe {
namespace {

constexpr size_t aligned = 256;

/// What a rank has of a weight: where it lies in the source, and how it is asked for.
struct held_weight {
  weight_piece piece;
  placed_weight placed;

  static held_weight of(const matrix& m, const product_part& p) {
    panel_part part{p.row_begin / panel_rows, (p.row_end + panel_rows - 1) / panel_rows,
                    segment_begin(m.type, m.cols, p.segment_begin),
                    segment_begin(m.type, m.cols, p.segment_end)};
    return {piece_of(m, p), {.of = m, .part = part}};
  }
  static held_weight of(const float* v, size_t count) {
    return {{reinterpret_cast<const std::byte*>(v), count * sizeof(float)},
            {.of = {}, .vector = v, .part = {0, 1, 0, uint32_t(count)}}};
  }
  bool nothing() const { return piece.bytes == 0 || piece.count == 0; }
};

/// f(pointer, held_weight) of everything that the part has.
template <class F>
void for_each(model_weights& w, const shard_part& part, F f) {
  weight_parts parts(w.shape, part);
  auto panels = [&f](matrix& m, const product_part& p) { f(m.panels, held_weight::of(m, p)); };
  auto floats = [&f](const float*& v, size_t count) {
    if (v != nullptr) f(v, held_weight::of(v, count));
  };
  size_t hidden = w.shape.hidden, head_dim = w.shape.head_dim;
  if (part.first()) panels(w.embed, {0, w.embed.rows, 0, segments});
  for (uint32_t i = part.layers.begin; i < part.layers.end; ++i) {
    auto& [a, m] = w.layers[i];
    floats(a.norm, hidden);
    panels(a.q, parts.q()), panels(a.k, parts.kv()), panels(a.v, parts.kv());
    panels(a.o, parts.spread(a.o));
    floats(a.q_bias, a.q.rows), floats(a.k_bias, a.k.rows);
    floats(a.v_bias, a.v.rows), floats(a.o_bias, hidden);
    floats(a.q_norm, head_dim), floats(a.k_norm, head_dim);
    floats(m.norm, hidden);
    panels(m.gate, parts.ffn()), panels(m.up, parts.ffn()), panels(m.down, parts.spread(m.down));
    floats(m.gate_bias, m.gate.rows), floats(m.up_bias, m.up.rows), floats(m.down_bias, hidden);
  }
  if (!part.last()) return;
  floats(w.norm, hidden);
  panels(w.head, parts.vocab());
}

/// Weights in the order in which they lie on the device, and where.
class placing {
 public:
  /// What lies inside a piece that is there already, as part of a tied head does, is not taken.
  void add(const held_weight& w) {
    if (w.nothing() || find(w.piece) != nowhere) return;
    placed_.emplace(w.piece.from, std::pair(w.piece, end_));
    order_.push_back(w.placed);
    order_.back().offset = end_;
    end_ += (w.placed.bytes() + aligned - 1) / aligned * aligned;
  }
  size_t find(const weight_piece& p) const {
    auto after = placed_.upper_bound(p.from);
    if (after == placed_.begin()) return nowhere;
    const auto& [known, offset] = std::prev(after)->second;
    auto ahead = size_t(p.from - known.from);
    bool same = ahead == 0 && p.bytes == known.bytes && p.count == known.count;
    bool inside = p.count == 1 && known.count == 1 && ahead + p.bytes <= known.bytes;
    return same || inside ? offset + ahead : nowhere;
  }
  const std::vector<placed_weight>& order() const { return order_; }
  size_t bytes() const { return end_; }
  static constexpr size_t nowhere = SIZE_MAX;

 private:
  std::map<const std::byte*, std::pair<weight_piece, size_t>> placed_;
  std::vector<placed_weight> order_;
  size_t end_ = 0;
};

placing places_of(model_weights& all, const shard_part& part) {
  placing places;
  for_each(all, part, [&places](auto&, const held_weight& w) { places.add(w); });
  return places;
}

}  // namespace

size_t device_weights::bytes_of(const model_weights& all, const shard_part& part) {
  model_weights read = all;
  return places_of(read, part).bytes();
}

result<std::unique_ptr<device_weights>> device_weights::load(accelerator& on,
                                                             const weight_source& from,
                                                             const shard_part& part,
                                                             const upload_options& how) {
  model_weights read = from.weights();
  const placing places = places_of(read, part);
  std::unique_ptr<device_weights> made(new device_weights(on, read, part, places.bytes()));
  std::byte* to = made->memory_.data();
  if (to == nullptr)
    return fail(
        "shard: no room for {} bytes of weights on the device; take a smaller model or type",
        places.bytes());
  if (auto sent = upload(on, from, places.order(), to, places.bytes(), how); !sent)
    return sent.why();
  for_each(made->weights_, part, [&](auto& pointer, const held_weight& w) {
    size_t offset = places.find(w.piece);
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(
        w.nothing() || offset == placing::nowhere ? nullptr : to + offset);
  });
  return made;
}

}  // namespace lethe
