#include "bench/gpu/random_weights.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/panels.hpp"

namespace lethe::bench {
namespace {

constexpr size_t aligned = 64;

/// f of every matrix, and of every vector with its length, in the order in which they lie.
template <class F>
void for_each(model_weights& w, F f) {
  size_t hidden = w.shape.hidden;
  f(w.embed);
  for (auto& [a, m] : w.layers) {
    f(a.norm, hidden);
    for (matrix* each : {&a.q, &a.k, &a.v, &a.o}) f(*each);
    f(m.norm, hidden);
    for (matrix* each : {&m.gate, &m.up, &m.down}) f(*each);
  }
  f(w.norm, hidden);
  if (!w.shape.tied) f(w.head);
}

model_weights forms_of(const model_shape& s, dtype type) {
  auto form = [type](uint32_t rows, uint32_t cols) {
    check(rows % panel_rows == 0 && cols % block_elements(type) == 0);
    return matrix{type, rows, cols, nullptr};
  };
  uint32_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  attention_weights a{.norm = nullptr,
                      .q = form(q, s.hidden),
                      .k = form(kv, s.hidden),
                      .v = form(kv, s.hidden),
                      .o = form(s.hidden, q)};
  mlp_weights m{.norm = nullptr,
                .gate = form(s.ffn, s.hidden),
                .up = form(s.ffn, s.hidden),
                .down = form(s.hidden, s.ffn)};
  model_weights w{.shape = s, .embed = form(s.vocab, s.hidden), .layers = {}, .head = {}};
  w.layers.assign(s.layers, {a, m});
  w.head = w.embed;
  return w;
}

/// Gives everything its address, from `begin` on; how much there is.
struct placing {
  uintptr_t at;

  void operator()(matrix& m) { m.panels = take(matrix_bytes(m.type, m.rows, m.cols)); }
  void operator()(const float*& v, size_t count) {
    v = reinterpret_cast<const float*>(take(count * sizeof(float)));
  }
  const std::byte* take(size_t bytes) {
    auto here = reinterpret_cast<const std::byte*>(at);
    at += (bytes + aligned - 1) / aligned * aligned;
    return here;
  }
};

size_t place(model_weights& w, const std::byte* begin) {
  placing each{reinterpret_cast<uintptr_t>(begin)};
  for_each(w, [&each](auto&... what) { each(what...); });
  if (w.shape.tied) w.head = w.embed;
  return each.at - reinterpret_cast<uintptr_t>(begin);
}

/// Stafford's variant 13 of a 64-bit finalizer over Weyl's sequence, as SplitMix64 has it.
uint64_t random_word(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// The power of two next to size / sqrt(cols).
int exponent_for(double size, uint32_t cols) {
  return int(std::lround(std::log2(size / std::sqrt(double(cols)))));
}

constexpr uint64_t each_half = 0x0001'0001'0001'0001;

/// Sign, the lowest bit of the exponent and the mantissa are random. The mean square of two
/// exponents' numbers is 5.83 of the lower one's power: 0.414 squared times that is one.
void fill_bf16(uint64_t word, size_t words, uint32_t cols, std::byte* to) {
  const uint64_t lowest = uint64_t(127 + exponent_for(0.414, cols)) << 7;
  for (size_t i = 0; i < words; ++i) {
    uint64_t four = (random_word(word + i) & 0x80ff * each_half) + lowest * each_half;
    std::memcpy(to + i * 8, &four, 8);
  }
}

/// Units of sixteen f16 scales with random mantissas, 1.53 of their power of two, and 512 bytes,
/// 73.9 from the middle: 113 together.
void fill_q8_0(uint64_t word, size_t words, uint32_t cols, std::byte* to) {
  constexpr size_t unit = unit_bytes(dtype::q8_0) / 8;
  constexpr size_t scales = unit_of(dtype::q8_0).scale_bytes / 8;
  const uint64_t lowest = uint64_t(15 + exponent_for(1 / 113.0, cols)) << 10;
  for (size_t i = 0; i < words; ++i) {
    uint64_t all = random_word(word + i);
    if (i % unit < scales) all = (all & 0x03ff * each_half) + lowest * each_half;
    std::memcpy(to + i * 8, &all, 8);
  }
}

panel_part whole(const matrix& m) { return {0, m.rows / panel_rows, 0, m.cols}; }

}  // namespace

random_weights::random_weights(const model_shape& shape, dtype type, size_t bytes,
                               reserved_addresses addresses)
    : type_(type), bytes_(bytes), addresses_(std::move(addresses)), weights_([&shape, type, this] {
        model_weights w = forms_of(shape, type);
        place(w, addresses_.begin());
        return w;
      }()) {}

result<std::unique_ptr<random_weights>> random_weights::make(const model_shape& shape, dtype type) {
  check(type == dtype::bf16 || type == dtype::q8_0);
  model_weights forms = forms_of(shape, type);
  size_t bytes = place(forms, nullptr);
  auto addresses = reserved_addresses::make(bytes);
  if (!addresses) return addresses.why();
  return std::unique_ptr<random_weights>(
      new random_weights(shape, type, bytes, *std::move(addresses)));
}

void random_weights::read(const matrix& from, const panel_part& part, std::byte* to) const {
  const size_t block = block_elements(type_), bytes = panel_block_bytes(type_);
  const size_t pitch = panel_bytes(type_, part.columns());
  const size_t filled = part.columns() / block * bytes;
  for (uint32_t p = part.panel_begin; p < part.panel_end; ++p, to += pitch) {
    size_t at = size_t(from.panels - addresses_.begin()) + p * panel_bytes(type_, from.cols) +
                part.column_begin / block * bytes;
    auto fill = type_ == dtype::bf16 ? fill_bf16 : fill_q8_0;
    fill(at / 8, filled / 8, from.cols, to);
    std::memset(to + filled, 0, pitch - filled);
  }
}

/// Gains of 0.9 to 1.1.
void random_weights::read(const float* from, size_t count, std::byte* to) const {
  size_t first =
      size_t(reinterpret_cast<const std::byte*>(from) - addresses_.begin()) / sizeof(float);
  for (size_t i = 0; i < count; ++i) {
    float gain = 0.9f + 0.2f * float(random_word(~(first + i)) >> 40) * 0x1p-24f;
    std::memcpy(to + i * sizeof gain, &gain, sizeof gain);
  }
}

result<held_weights> held_weights::of(const random_weights& from) {
  auto memory = region::map(from.bytes(), "weights");
  if (!memory) return memory.why();
  model_weights there = from.weights(), here = there;
  place(here, memory->data());
  auto source = reinterpret_cast<uintptr_t>(there.embed.panels);
  auto to = [&memory, source](const void* at) {
    return memory->data() + (reinterpret_cast<uintptr_t>(at) - source);
  };
  struct reading {
    const random_weights& from;
    decltype(to)& place_of;
    void operator()(const matrix& m) { from.read(m, whole(m), place_of(m.panels)); }
    void operator()(const float* v, size_t count) { from.read(v, count, place_of(v)); }
  } each{from, to};
  for_each(there, [&each](auto&... what) { each(what...); });
  return held_weights{*std::move(memory), std::move(here)};
}

}  // namespace lethe::bench
