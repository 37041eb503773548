#include "parallel/device_weights.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "kernels/panels.hpp"

namespace lethe {
namespace {

constexpr size_t pinned_bytes = size_t{16} << 20;
constexpr size_t aligned = 256, panel_aligned = 64;

constexpr size_t up_to(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

using piece = weight_piece;

/// Where stretches are going they lie closer.
size_t there(const piece& p) {
  return p.count * (p.count == 1 ? p.bytes : up_to(p.bytes, panel_aligned));
}

/// f(pointer, piece) of everything that the part has.
template <class F>
void for_each(model_weights& w, const shard_part& part, F f) {
  weight_parts parts(w.shape, part);
  auto panels = [&f](matrix& m, const product_part& p) { f(m.panels, piece_of(m, p)); };
  auto floats = [&f](const float*& v, size_t count) {
    if (v != nullptr) f(v, piece{reinterpret_cast<const std::byte*>(v), count * sizeof(float)});
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

/// Pieces in the order in which they lie on the device, and where.
class placing {
 public:
  /// What lies inside a piece that is there already, as part of a tied head does, is not taken.
  void add(const piece& p) {
    if (p.bytes == 0 || p.count == 0 || find(p) != nowhere) return;
    placed_.emplace(p.from, std::pair(p, end_));
    order_.push_back(p);
    end_ += up_to(there(p), aligned);
  }
  size_t find(const piece& p) const {
    auto after = placed_.upper_bound(p.from);
    if (after == placed_.begin()) return nowhere;
    const auto& [known, offset] = std::prev(after)->second;
    auto ahead = size_t(p.from - known.from);
    bool same = ahead == 0 && p.bytes == known.bytes && p.count == known.count;
    bool inside = p.count == 1 && known.count == 1 && ahead + p.bytes <= known.bytes;
    return same || inside ? offset + ahead : nowhere;
  }
  const std::vector<piece>& order() const { return order_; }
  size_t bytes() const { return end_; }
  static constexpr size_t nowhere = SIZE_MAX;

 private:
  std::map<const std::byte*, std::pair<piece, size_t>> placed_;
  std::vector<piece> order_;
  size_t end_ = 0;
};

/// A row of bytes on its way to a device.
class stream_to {
 public:
  stream_to(accelerator& on, std::byte* to, std::byte* pinned) : on_(on), to_(to), at_(pinned) {}

  void put(const std::byte* from, size_t bytes) {
    for (size_t n; bytes != 0; bytes -= n, from += n) {
      n = std::min(bytes, pinned_bytes - held_);
      std::memcpy(at_ + held_, from, n);
      held_ += n;
      if (held_ == pinned_bytes) flush();
    }
  }
  void pad(size_t to) {
    static constexpr std::byte zeros[aligned]{};
    size_t end = sent_ + held_;
    put(zeros, up_to(end, to) - end);
  }
  device_error flush() {
    if (held_ != 0 && error_ == 0) error_ = on_.copy(to_ + sent_, at_, held_);
    if (held_ != 0 && error_ == 0) error_ = on_.finish();
    sent_ += std::exchange(held_, 0);
    return error_;
  }

 private:
  accelerator& on_;
  std::byte *const to_, *const at_;
  size_t sent_ = 0, held_ = 0;
  device_error error_ = 0;
};

device_error copy_all(accelerator& on, const std::vector<piece>& pieces, std::byte* to,
                      std::byte* pinned) {
  stream_to device(on, to, pinned);
  for (const piece& p : pieces) {
    for (size_t i = 0; i < p.count; ++i) {
      device.put(p.from + i * p.pitch, p.bytes);
      device.pad(p.count == 1 ? 1 : panel_aligned);
    }
    device.pad(aligned);
  }
  return device.flush();
}

}  // namespace

result<std::unique_ptr<device_weights>> device_weights::upload(accelerator& on,
                                                               const model_weights& from,
                                                               const shard_part& part) {
  model_weights read = from;
  placing places;
  for_each(read, part, [&](auto&, const piece& p) { places.add(p); });
  std::unique_ptr<device_weights> made(new device_weights(on, from, part, places.bytes()));
  device_memory pinned(on, memory_kind::pinned, pinned_bytes);
  std::byte* to = made->memory_.data();
  if (to == nullptr || pinned.data() == nullptr)
    return fail(
        "shard: no room for {} bytes of weights on the device; take a smaller model or type",
        places.bytes());
  if (device_error e = copy_all(on, places.order(), to, pinned.data()))
    return fail("shard: the weights did not reach the device: CUDA error {}", e);
  for_each(made->weights_, part, [&](auto& pointer, const piece& p) {
    size_t offset = places.find(p);
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(
        p.bytes == 0 || p.count == 0 || offset == placing::nowhere ? nullptr : to + offset);
  });
  return made;
}

}  // namespace lethe
