#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "bench/gpu/cublaslt.hpp"
#include "bench/gpu/matrix_peak.cuh"
#include "kernels/cuda/cuda_row.hpp"
#include "runtime/batch/drawing.hpp"
#include "tests/unit/kernels_attend_paged.hpp"
#include "tests/unit/kernels_matmul_formats.hpp"
#include "tests/unit/kernels_matmul_input.hpp"

// Products, decode attention and draws beside the device's own copy, the first two in both
// arithmetics; products of many rows beside what its tensor cores multiply out of registers, of
// bf16 beside cuBLASLt's. Each is checked before it is timed.

namespace lethe {

namespace {

constexpr size_t beyond_caches = size_t{1} << 28;  // of weights read by turns

/// Exactly the reference's, or within what rounding x costs: a bound in checks_tensor_matmul.cpp.
/// Here of the size that sums of so many random products have.
bool is_right(const cuda_row& row, float got, float want, float size) {
  if (row.arithmetic == arithmetic::exact) return std::memcmp(&got, &want, sizeof got) == 0;
  return std::abs(got - want) <= size * 0x1p-8f;
}

void check_product(const cuda_row& row, const formats::tensor& w, const input& x,
                   const std::vector<float>& got) {
  uint32_t stride = w.rows;
  for (uint32_t first : {0u, w.rows - 16}) {
    std::vector<float> want(size_t{x.rows} * 16);
    reference.matmul(w.panels, {first, first + 16, 0, segments}, x.view(), want.data(), 16);
    for (uint32_t m = 0; m < x.rows; m++) {
      for (uint32_t n = 0; n < 16; n++) {
        float size = 0;
        for (uint32_t k = 0; row.arithmetic == arithmetic::tensor && k < x.cols; k++) {
          size += std::abs(x.f[m * x.stride + k]);  // weights are below one half
        }
        require(is_right(row, got[size_t{m} * stride + first + n], want[m * 16 + n], size),
                "a product differs from the reference row");
      }
    }
  }
}

/// The same product by cuBLASLt, of x rounded before, and how long it takes of ours.
void bench_peer(const bench& b, const formats::tensor& w, const input& x,
                const std::vector<float>& ours, const std::string& what, double our_us) {
  auto peer = open_cublaslt(w.rows, w.cols, x.rows);
  if (peer == nullptr) {
    std::fprintf(stderr, "no cuBLASLt: %s without a peer\n", what.c_str());
    return;
  }
  size_t bytes = w.file.size();
  uint32_t copies = uint32_t(beyond_caches / bytes) + 1;
  room<uint8_t> weights(copies * bytes);
  for (uint32_t c = 0; c < copies; c++) {
    copy_in(weights.data() + c * bytes, w.file.data(), bytes);
  }
  std::vector<uint16_t> rounded;
  for (float f : x.f) {
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    rounded.push_back(uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
  }
  room<uint16_t> in(rounded);
  room<float> y(ours.size());
  auto run = [&](int i) {
    return peer->multiply(weights.data() + uint32_t(i) % copies * bytes, in.data(), y.data(),
                          b.stream);
  };
  must(run(0), "cuBLASLt's product");
  std::vector<float> theirs = y.read();
  for (size_t i = 0; i < ours.size(); i++) {
    require(std::abs(theirs[i] - ours[i]) <= 0x1p-10f * float(w.cols), "cuBLASLt says otherwise");
  }
  spread us = time_of(b, run);
  say(b, what + ",\"by\":\"cublasLt\",\"ours_of_it\":" + std::to_string(our_us / us.median),
      double(bytes) + 2.0 * x.rows * w.cols + 4.0 * x.rows * w.rows, us);
}

void bench_product(const bench& b, const cuda_row& row, dtype type, uint32_t n, uint32_t k) {
  formats::random random(3);
  formats::tensor w(type, n, k, random);
  size_t bytes = matrix_bytes(type, n, k);
  uint32_t copies = uint32_t(beyond_caches / bytes) + 1;
  room<std::byte> panels(copies * bytes);
  for (uint32_t c = 0; c < copies; c++) {
    copy_in(panels.data() + c * bytes, w.panels.panels, bytes);
  }
  for (uint32_t m : {1u, 4u, 16u, 128u, 512u, 4096u}) {
    input x(m, k, k, normal_floats(size_t{m} * k, m));
    room<float> f(x.f), scales(x.plain.scales), y(size_t{m} * n);
    room<int8_t> q(x.plain.q);
    room<int16_t> sums(x.plain.sums);
    activations on{.rows = m, .f = f.data(), .stride = k};
    on.q = {q.data(), scales.data(), sums.data()};
    auto run = [&](int i) {
      matrix turn{type, n, k, panels.data() + uint32_t(i) % copies * bytes};
      device_product product{{turn}, {0, n, 0, segments}, {y.data(), n}};
      return row.matmul({&product, 1}, on, b.stream);
    };
    must(run(0), "a product");
    std::vector<float> got = y.read();
    check_product(row, w, x, got);
    std::string what = std::string("\"bench\":\"matmul\",\"type\":\"") + name_of(type) +
                       "\",\"n\":" + std::to_string(n) + ",\"k\":" + std::to_string(k) +
                       ",\"rows\":" + std::to_string(m);
    spread us = time_of(b, run);
    if (!is_float(type) || row.arithmetic == arithmetic::tensor) {
      double rate = 2.0 * m * n * k / (us.median * 1e-6);
      what += ",\"tera_ops_per_s\":" + std::to_string(rate * 1e-12) + ",\"of_peak\":" +
              std::to_string(rate / (is_float(type) ? b.bf16_ops_per_s : b.s8_ops_per_s));
    }
    say(b, what + ",\"by\":\"" + row.name + "\"", double(bytes) + 4.0 * m * (n + k), us);
    bool has_peer = row.arithmetic == arithmetic::tensor && type == dtype::bf16;
    if (has_peer) bench_peer(b, w, x, got, what, us.median);
  }
}

/// Decode of `requests` requests of one length: 8 kv heads of 128, each read by 4 query heads.
struct decode {
  static constexpr uint32_t kv_heads = 8, group = 4, heads = kv_heads * group, head_dim = 128;
  static constexpr uint32_t page_tokens = 16;
  uint32_t requests, context, pages_each;
  size_t half_bytes, page_bytes;
  std::vector<uint32_t> pages;
  std::vector<token_run> runs;
  std::vector<std::byte> pool;
  std::vector<float> q;

  decode(uint32_t count, uint32_t tokens, kv_type type)
      : requests(count),
        context(tokens),
        pages_each(tokens / page_tokens),
        half_bytes(size_t{page_tokens} * kv_row_bytes(type, head_dim)),
        page_bytes(2 * half_bytes * kv_heads),
        pages(size_t{count} * pages_each),
        pool(pages.size() * page_bytes),
        q(normal_floats(size_t{count} * heads * head_dim, 1)) {
    std::iota(pages.begin(), pages.end(), 0u);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(5));
    for (uint32_t r = 0; r < count; r++) runs.push_back({r, r, tokens - 1, 1, r * pages_each});
    std::vector<float> k = normal_floats(size_t{tokens} * head_dim, 2);
    for (uint32_t r = 0; r < count; r++) {
      for (uint32_t h = 0; h < kv_heads; h++) {
        reference.kv_store(view(type, r, h), 0, tokens, k.data(), k.data(), head_dim);
      }
    }
  }
  /// The pool as a device has it.
  std::vector<std::byte> on_device(kv_type type) const {
    std::vector<std::byte> rows = pool;
    for (size_t i = 0; i < pages.size() * kv_heads; i++) {
      std::byte* keys = rows.data() + 2 * half_bytes * i;
      make_rows(type, head_dim, page_tokens, true, keys);
      make_rows(type, head_dim, page_tokens, false, keys + half_bytes);
    }
    return rows;
  }
  kv_view view(kv_type type, uint32_t request, uint32_t head) {
    size_t key = 2 * half_bytes * head;
    return {pool.data(), page_bytes, key,     key + half_bytes, pages.data() + request * pages_each,
            page_tokens, type,       head_dim};
  }
};

void check_decode(const cuda_row& row, decode& d, kv_type type, float scale,
                  const std::vector<float>& got) {
  uint32_t request = d.requests - 1, head = decode::heads - 1;
  std::vector<float> want(decode::head_dim), room(attention_scratch_floats(1, 1, want.size()) + 16);
  float* scratch = room.data();
  while (reinterpret_cast<uintptr_t>(scratch) % 64 != 0) scratch++;
  size_t at = (size_t{request} * decode::heads + head) * decode::head_dim;
  reference.attend({d.view(type, request, decode::kv_heads - 1), d.q.data() + at, 0, want.data(), 0,
                    d.context - 1, 1, 1, 0, scale, scratch});
  for (size_t i = 0; i < want.size(); i++) {
    // Averages of values of up to five.
    require(is_right(row, got[at + i], want[i], 5), "attention differs from the reference row");
  }
}

void bench_decode(const bench& b, const cuda_row& row, kv_type type, uint32_t requests,
                  uint32_t context) {
  decode d(requests, context, type);
  uint32_t tiles = attention_tiles(context - 1, 0);
  float scale = 1.0f / std::sqrt(float(decode::head_dim));
  room<std::byte> pool(d.on_device(type));
  room<uint32_t> pages(d.pages);
  room<token_run> runs(d.runs);
  room<float> q(d.q), out(d.q.size());
  room<float> scratch(
      decode_scratch_floats(row.arithmetic, requests, decode::heads, decode::head_dim, tiles));
  device_attention a{.kv = {pool.data(), d.page_bytes, 0, d.half_bytes, 2 * d.half_bytes,
                            pages.data(), decode::page_tokens, type, decode::head_dim},
                     .runs = runs.data(),
                     .run_count = requests,
                     .tokens_max = 1,
                     .q = q.data(),
                     .q_stride = decode::heads * decode::head_dim,
                     .out = out.data(),
                     .out_stride = decode::heads * decode::head_dim,
                     .heads = decode::heads,
                     .kv_heads = decode::kv_heads,
                     .first_head = 0,
                     .group = decode::group,
                     .window = 0,
                     .scale = scale,
                     .tiles_max = tiles,
                     .scratch = scratch.data()};
  auto run = [&](int) { return row.attend(a, b.stream); };
  must(run(0), "attention");
  check_decode(row, d, type, scale, out.read());
  std::string what = "\"bench\":\"decode_attention\",\"kv\":\"" +
                     std::string(type == kv_type::bf16 ? "bf16" : "int8") +
                     "\",\"requests\":" + std::to_string(requests) +
                     ",\"context\":" + std::to_string(context) + ",\"by\":\"" + row.name + "\"";
  say(b, what, double(d.pool.size()), time_of(b, run));
}

/// Of rows as large as a vocabulary of today, each with numbers of its own.
struct draws {
  static constexpr uint32_t vocab = 128256;
  std::vector<float> logits;
  std::vector<row_draw> how;

  draws(uint32_t rows, row_draw each) : logits(normal_floats(size_t{rows} * vocab, 7, 3.0f)) {
    for (uint32_t r = 0; r < rows; r++) {
      how.push_back(each);
      how.back().row = r;
      how.back().u = (r + 0.5) / rows;
    }
  }
  void check(const std::vector<uint32_t>& got) const {
    sampler_scratch room(vocab, std::pmr::get_default_resource());
    for (const row_draw& h : how) {
      std::span<const float> row(&logits[size_t{h.row} * vocab], vocab);
      require(got[h.row] == draw(reference.draw, row, h, room), "a draw differs from the host's");
    }
  }
};

/// Beside one reading of the logits.
void bench_draw(const bench& b, const char* name, uint32_t rows, row_draw each) {
  draws d(rows, each);
  room<float> logits(d.logits), weights(rows * draw_whole(draws::vocab));
  room<uint32_t> places(2 * rows * draw_whole(draws::vocab)), ids(rows);
  room<row_draw> how(d.how);
  auto run = [&](int) {
    return cuda.draw({logits.data(), draws::vocab, draws::vocab, how.data(), rows, weights.data(),
                      places.data(), ids.data()},
                     b.stream);
  };
  must(run(0), "a draw");
  d.check(ids.read());
  std::string what =
      std::string("\"bench\":\"draw\",\"how\":\"") + name + "\",\"rows\":" + std::to_string(rows);
  say(b, what, 4.0 * double(d.logits.size()), time_of(b, run));
}

/// What is left where requests were, beside CUDA's own way to write zeros. Bytes are written once,
/// where a copy reads them, too.
void bench_wipe(const bench& b, size_t bytes) {
  room<std::byte> what(bytes);
  auto full = [&] {
    must(cudaMemset(what.data(), 0xff, bytes), "a fill");
    must(cudaDeviceSynchronize(), "a fill");
  };
  auto wiped = [&] {
    std::vector<std::byte> left = what.read();
    require(std::count(left.begin(), left.end(), std::byte{0}) == std::ptrdiff_t(bytes),
            "a wipe left something");
  };
  auto say_of = [&](const char* by, auto run) {
    full();
    must(run(0), "a wipe");
    wiped();
    spread us = time_of(b, run);
    std::string name = std::string("\"bench\":\"wipe\",\"by\":\"") + by + "\"";
    say(b, name + ",\"bytes\":" + std::to_string(bytes), double(bytes), us);
    return us.median;
  };
  double ours = say_of("wipe", [&](int) { return cuda.wipe(what.data(), bytes, b.stream); });
  double theirs = say_of("cudaMemsetAsync",
                         [&](int) { return cudaMemsetAsync(what.data(), 0, bytes, b.stream); });
  std::fprintf(stderr, "wipe of %zu bytes: %.2f us, cudaMemsetAsync %.2f us, ratio %.2f\n", bytes,
               ours, theirs, theirs / ours);
}

/// A page of 8B's keys and values (sixteen tokens in bf16), and more than caches hold.
void bench_wipes(const bench& b) {
  for (size_t bytes : {size_t{2} << 20, copied_bytes}) bench_wipe(b, bytes);
}

void bench_draws(const bench& b) {
  for (uint32_t rows : {1u, 64u}) {
    bench_draw(b, "greedy", rows, {.temperature = 0});
    bench_draw(b, "plain", rows, {});
    bench_draw(b, "top_k 40", rows, {.top_k = 40});
    bench_draw(b, "top_p 0.9", rows, {.top_p = 0.9f});
    bench_draw(b, "typical_p 0.9, min_p 0.01", rows, {.typical_p = 0.9f, .min_p = 0.01f});
  }
}

int run_all(const char* commit) {
  bench b = open_bench(commit);
  bench_copy(b);
  bench_wipes(b);
  b.s8_ops_per_s = bench_peak<device::product_type::s8>(b, "s8", 0x01010101);
  b.bf16_ops_per_s = bench_peak<device::product_type::bf16>(b, "bf16", 0x3f803f80);
  for (dtype type : formats::all_types) {
    bool both = type == dtype::f16 || type == dtype::bf16;
    for (const cuda_row* row : {&cuda, &cuda_tensor}) {
      if (row == &cuda_tensor && !both) continue;
      bench_product(b, *row, type, 4096, 4096);
      bench_product(b, *row, type, 14336, 4096);
    }
  }
  for (kv_type type : {kv_type::bf16, kv_type::int8}) {
    for (uint32_t requests : {1u, 16u}) {
      for (uint32_t context : {1024u, 8192u}) {
        for (const cuda_row* row : {&cuda, &cuda_tensor}) {
          bench_decode(b, *row, type, requests, context);
        }
      }
    }
  }
  bench_draws(b);
  return 0;
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU\n");
    return 77;
  }
  return lethe::run_all(argc > 1 ? argv[1] : "unknown");
}
