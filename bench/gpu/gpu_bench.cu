#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "kernels/cuda/cuda_row.hpp"
#include "runtime/batch/drawing.hpp"
#include "tests/unit/kernels_attend_paged.hpp"
#include "tests/unit/kernels_matmul_formats.hpp"
#include "tests/unit/kernels_matmul_input.hpp"

// Products, decode attention and draws beside the device's own copy. Each is checked before it is
// timed.

namespace lethe {

namespace {

constexpr int warm_ups = 5, timed_runs = 50;
constexpr size_t copied_bytes = size_t{1} << 29;
constexpr size_t beyond_caches = size_t{1} << 28;  // of weights read by turns

void must(int error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("FAILED: %s: %s\n", what, cudaGetErrorString(cudaError_t(error)));
  std::exit(1);
}
void require(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what);
  std::exit(1);
}

/// Memory on the device.
template <class T>
class room {
 public:
  explicit room(size_t count) : count_(count) {
    must(cudaMalloc(&at_, count * sizeof(T)), "memory on the device");
  }
  explicit room(const std::vector<T>& values) : room(values.size()) {
    must(cudaMemcpy(at_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "a copy");
  }
  room(const room&) = delete;
  ~room() { cudaFree(at_); }
  T* data() const { return at_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    must(cudaDeviceSynchronize(), "a kernel");
    must(cudaMemcpy(values.data(), at_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "a copy");
    return values;
  }

 private:
  size_t count_;
  T* at_ = nullptr;
};

struct spread {
  double median, p10, p90;
};

struct bench {
  cudaStream_t stream;
  cudaEvent_t begin, end;
  std::string device, commit;
  double copy_bytes_per_s = 0;
};

/// Microseconds of run(i) for i = 0, 1, ...
template <class F>
spread time_of(const bench& b, F run) {
  std::vector<double> us;
  for (int i = 0; i < warm_ups + timed_runs; i++) {
    must(cudaEventRecord(b.begin, b.stream), "an event");
    must(run(i), "a launch");
    must(cudaEventRecord(b.end, b.stream), "an event");
    must(cudaEventSynchronize(b.end), "a kernel");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, b.begin, b.end), "a time");
    if (i >= warm_ups) us.push_back(double(ms) * 1e3);
  }
  std::sort(us.begin(), us.end());
  return {us[timed_runs / 2], us[timed_runs / 10], us[timed_runs * 9 / 10]};
}

void say(const bench& b, const std::string& what, double bytes, const spread& us) {
  double rate = bytes / (us.median * 1e-6);
  std::printf(
      "{%s,\"us\":%.2f,\"us_p10\":%.2f,\"us_p90\":%.2f,\"gb_per_s\":%.1f,\"of_copy\":%.3f,"
      "\"device\":\"%s\",\"commit\":\"%s\"}\n",
      what.c_str(), us.median, us.p10, us.p90, rate * 1e-9, rate / b.copy_bytes_per_s,
      b.device.c_str(), b.commit.c_str());
  std::fflush(stdout);
}

void bench_copy(bench& b) {
  room<std::byte> from(copied_bytes), to(copied_bytes);
  must(cudaMemset(from.data(), 1, copied_bytes), "a fill");
  spread us = time_of(b, [&](int) {
    return cudaMemcpyAsync(to.data(), from.data(), copied_bytes, cudaMemcpyDeviceToDevice,
                           b.stream);
  });
  require(to.read().back() == std::byte{1}, "the copy copied nothing");
  b.copy_bytes_per_s = 2.0 * copied_bytes / (us.median * 1e-6);
  say(b, "\"bench\":\"copy\"", 2.0 * copied_bytes, us);
}

void check_product(const formats::tensor& w, const input& x, const std::vector<float>& got) {
  uint32_t stride = w.rows;
  for (uint32_t first : {0u, w.rows - 16}) {
    std::vector<float> want(size_t{x.rows} * 16);
    reference.matmul(w.panels, {first, first + 16, 0, segments}, x.view(), want.data(), 16);
    for (uint32_t m = 0; m < x.rows; m++) {
      require(std::memcmp(&want[m * 16], &got[size_t{m} * stride + first], 64) == 0,
              "a product differs from the reference row");
    }
  }
}

void bench_product(const bench& b, dtype type, uint32_t n, uint32_t k) {
  formats::random random(3);
  formats::tensor w(type, n, k, random);
  size_t bytes = matrix_bytes(type, n, k);
  uint32_t copies = uint32_t(beyond_caches / bytes) + 1;
  room<std::byte> panels(copies * bytes);
  for (uint32_t c = 0; c < copies; c++) {
    must(cudaMemcpy(panels.data() + c * bytes, w.panels.panels, bytes, cudaMemcpyHostToDevice),
         "weights");
  }
  for (uint32_t m : {1u, 4u, 16u, 128u}) {
    input x(m, k, k, normal_floats(size_t{m} * k, m));
    room<float> f(x.f), scales(x.plain.scales), y(size_t{m} * n);
    room<int8_t> q(x.plain.q);
    room<int16_t> sums(x.plain.sums);
    activations on{.rows = m, .f = f.data(), .stride = k};
    on.q = {q.data(), scales.data(), sums.data()};
    auto run = [&](int i) {
      matrix turn{type, n, k, panels.data() + uint32_t(i) % copies * bytes};
      return cuda.matmul({turn}, {0, n, 0, segments}, on, y.data(), n, b.stream);
    };
    must(run(0), "a product");
    check_product(w, x, y.read());
    std::string what = std::string("\"bench\":\"matmul\",\"type\":\"") + name_of(type) +
                       "\",\"n\":" + std::to_string(n) + ",\"k\":" + std::to_string(k) +
                       ",\"rows\":" + std::to_string(m);
    say(b, what, double(bytes) + 4.0 * m * (n + k), time_of(b, run));
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
  /// The pool with keys as a device has them.
  std::vector<std::byte> on_device(kv_type type) const {
    std::vector<std::byte> rows = pool;
    for (size_t i = 0; i < pages.size() * kv_heads; i++) {
      make_key_rows(type, head_dim, page_tokens, rows.data() + 2 * half_bytes * i);
    }
    return rows;
  }
  kv_view view(kv_type type, uint32_t request, uint32_t head) {
    size_t key = 2 * half_bytes * head;
    return {pool.data(), page_bytes, key,     key + half_bytes, pages.data() + request * pages_each,
            page_tokens, type,       head_dim};
  }
};

void check_decode(decode& d, kv_type type, float scale, const std::vector<float>& got) {
  uint32_t request = d.requests - 1, head = decode::heads - 1;
  std::vector<float> want(decode::head_dim), room(attention_scratch_floats(1, 1, want.size()) + 16);
  float* scratch = room.data();
  while (reinterpret_cast<uintptr_t>(scratch) % 64 != 0) scratch++;
  size_t at = (size_t{request} * decode::heads + head) * decode::head_dim;
  reference.attend({d.view(type, request, decode::kv_heads - 1), d.q.data() + at, 0, want.data(), 0,
                    d.context - 1, 1, 1, 0, scale, scratch});
  require(std::memcmp(want.data(), &got[at], want.size() * 4) == 0,
          "attention differs from the reference row");
}

void bench_decode(const bench& b, kv_type type, uint32_t requests, uint32_t context) {
  decode d(requests, context, type);
  uint32_t tiles = attention_tiles(context - 1, 0);
  float scale = 1.0f / std::sqrt(float(decode::head_dim));
  room<std::byte> pool(d.on_device(type));
  room<uint32_t> pages(d.pages);
  room<token_run> runs(d.runs);
  room<float> q(d.q), out(d.q.size());
  room<float> scratch(decode_scratch_floats(requests, decode::heads, tiles));
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
  auto run = [&](int) { return cuda.attend(a, b.stream); };
  must(run(0), "attention");
  check_decode(d, type, scale, out.read());
  std::string what = "\"bench\":\"decode_attention\",\"kv\":\"" +
                     std::string(type == kv_type::bf16 ? "bf16" : "int8") +
                     "\",\"requests\":" + std::to_string(requests) +
                     ",\"context\":" + std::to_string(context);
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
  cudaDeviceProp device;
  must(cudaGetDeviceProperties(&device, 0), "the device's properties");
  int driver = 0;
  must(cudaDriverGetVersion(&driver), "the driver's version");
  bench b{};
  b.device = std::string(device.name) + ", CUDA driver " + std::to_string(driver);
  b.commit = commit;
  must(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking), "a stream");
  must(cudaEventCreate(&b.begin), "an event");
  must(cudaEventCreate(&b.end), "an event");
  bench_copy(b);
  for (dtype type : formats::all_types) {
    bench_product(b, type, 4096, 4096);
    bench_product(b, type, 14336, 4096);
  }
  for (kv_type type : {kv_type::bf16, kv_type::int8}) {
    for (uint32_t requests : {1u, 16u}) {
      for (uint32_t context : {1024u, 8192u}) bench_decode(b, type, requests, context);
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
