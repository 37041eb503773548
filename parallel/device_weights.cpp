#include "parallel/device_weights.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

namespace lethe {
namespace {

constexpr size_t piece_bytes = size_t{16} << 20;
constexpr size_t aligned = 256;

struct part {
  const std::byte* from;
  size_t bytes, offset;
};

/// f(pointer, bytes) of everything the weights point to.
template <class F>
void for_each(model_weights& w, F f) {
  auto panels = [&f](matrix& m) { f(m.panels, matrix_bytes(m.type, m.rows, m.cols)); };
  auto floats = [&f](const float*& v, size_t count) {
    if (v != nullptr) f(v, count * sizeof(float));
  };
  size_t hidden = w.shape.hidden, head_dim = w.shape.head_dim;
  panels(w.embed);
  for (layer_weights& l : w.layers) {
    attention_weights& a = l.attention;
    floats(a.norm, hidden);
    for (matrix* m : {&a.q, &a.k, &a.v, &a.o}) panels(*m);
    floats(a.q_bias, a.q.rows), floats(a.k_bias, a.k.rows);
    floats(a.v_bias, a.v.rows), floats(a.o_bias, hidden);
    floats(a.q_norm, head_dim), floats(a.k_norm, head_dim);
    mlp_weights& m = l.mlp;
    floats(m.norm, hidden);
    for (matrix* each : {&m.gate, &m.up, &m.down}) panels(*each);
    floats(m.gate_bias, m.gate.rows), floats(m.up_bias, m.up.rows), floats(m.down_bias, hidden);
  }
  floats(w.norm, hidden);
  panels(w.head);
}

/// Where each part will lie, and behind the last the bytes of all.
std::vector<part> parts_of(model_weights weights) {
  std::map<const void*, size_t> known;
  std::vector<part> parts;
  size_t end = 0;
  for_each(weights, [&](const auto& from, size_t bytes) {
    if (!known.emplace(from, end).second) return;
    parts.push_back({reinterpret_cast<const std::byte*>(from), bytes, end});
    end += (bytes + aligned - 1) / aligned * aligned;
  });
  parts.push_back({nullptr, 0, end});
  return parts;
}

device_error copy_all(accelerator& on, const std::vector<part>& parts, std::byte* to,
                      std::byte* pinned) {
  for (const part& p : parts)
    for (size_t done = 0; done < p.bytes; done += piece_bytes) {
      size_t bytes = std::min(piece_bytes, p.bytes - done);
      std::memcpy(pinned, p.from + done, bytes);
      if (device_error e = on.copy(to + p.offset + done, pinned, bytes)) return e;
      if (device_error e = on.finish()) return e;
    }
  return 0;
}

}  // namespace

result<std::unique_ptr<device_weights>> device_weights::upload(accelerator& on,
                                                               const model_weights& from) {
  std::vector<part> parts = parts_of(from);
  size_t bytes = parts.back().offset;
  std::unique_ptr<device_weights> made(new device_weights(on, from, bytes));
  device_memory pinned(on, memory_kind::pinned, piece_bytes);
  std::byte* to = made->memory_.data();
  if (to == nullptr || pinned.data() == nullptr)
    return fail(
        "shard: no room for {} bytes of weights on the device; take a smaller model or type",
        bytes);
  if (device_error e = copy_all(on, parts, to, pinned.data()))
    return fail("shard: the weights did not reach the device: CUDA error {}", e);
  std::map<const void*, size_t> offsets;
  for (const part& p : parts) offsets.emplace(p.from, p.offset);
  for_each(made->weights_, [&](auto& pointer, size_t) {
    pointer =
        reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(to + offsets.at(pointer));
  });
  return made;
}

}  // namespace lethe
