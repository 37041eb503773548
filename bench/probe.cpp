// The machine's limits, as one line of JSON: what other programs' numbers are measured against.

#include <fmt/format.h>
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;
constexpr size_t per_thread = size_t{256} << 20;

double seconds_of(auto&& work) {
  auto begin = steady::now();
  work();
  return std::chrono::duration<double>(steady::now() - begin).count();
}

void on_all(uint32_t threads, auto&& work) {
  std::vector<std::thread> team;
  for (uint32_t t = 1; t < threads; ++t) team.emplace_back([&work, t] { work(t); });
  work(0u);
  for (auto& t : team) t.join();
}

#if defined(__AVX512F__)
using lanes = __m512i;
inline lanes load(const char* p) { return _mm512_load_si512(p); }
inline lanes mix(lanes a, lanes b) { return _mm512_xor_si512(a, b); }
inline long fold(lanes a) { return _mm512_reduce_add_epi64(a); }
#else
using lanes = __m256i;
inline lanes load(const char* p) { return _mm256_load_si256(reinterpret_cast<const lanes*>(p)); }
inline lanes mix(lanes a, lanes b) { return _mm256_xor_si256(a, b); }
inline long fold(lanes a) { return _mm256_extract_epi64(a, 0) ^ _mm256_extract_epi64(a, 3); }
#endif

/// Reads `bytes` in `streams` equal parts side by side.
template <int streams, bool prefetch>
long read_all(const char* at, size_t bytes) {
  size_t part = bytes / streams;
  lanes sum[streams] = {};
  for (size_t i = 0; i < part; i += 64) {
    for (int s = 0; s < streams; ++s) {
      const char* p = at + s * part + i;
      if constexpr (prefetch) _mm_prefetch(p + 2048, _MM_HINT_T0);
      for (size_t j = 0; j < 64; j += sizeof(lanes)) sum[s] = mix(sum[s], load(p + j));
    }
  }
  for (int s = 1; s < streams; ++s) sum[0] = mix(sum[0], sum[s]);
  return fold(sum[0]);
}

using reader = long (*)(const char*, size_t);
constexpr struct {
  const char* name;
  reader read;
} readers[] = {
    {"1 stream", read_all<1, false>},  {"1 stream, prefetch", read_all<1, true>},
    {"2 streams", read_all<2, false>}, {"2 streams, prefetch", read_all<2, true>},
    {"4 streams", read_all<4, false>}, {"4 streams, prefetch", read_all<4, true>},
    {"8 streams", read_all<8, false>}, {"8 streams, prefetch", read_all<8, true>},
};

volatile long sink;

double best_read(const char* memory, uint32_t threads, reader read) {
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    double s = seconds_of([&] {
      on_all(threads, [&](uint32_t t) { sink = sink + read(memory + t * per_thread, per_thread); });
    });
    best = std::max(best, double(per_thread) * threads / s);
  }
  return best;
}

#if defined(__AVX512F__)
using floats = __m512;
inline floats fma(floats a, floats b, floats c) { return _mm512_fmadd_ps(a, b, c); }
inline floats all(float v) { return _mm512_set1_ps(v); }
#else
using floats = __m256;
inline floats fma(floats a, floats b, floats c) { return _mm256_fmadd_ps(a, b, c); }
inline floats all(float v) { return _mm256_set1_ps(v); }
#endif

double best_fma(uint32_t threads) {
  constexpr int chains = 12, rounds = 2'000'000;
  double best = 0;
  for (int again = 0; again < 5; ++again) {
    double s = seconds_of([&] {
      on_all(threads, [&](uint32_t t) {
        floats sum[chains];
        for (auto& v : sum) v = all(float(t));
        floats a = all(1.0000001f), b = all(1e-9f);
        for (int i = 0; i < rounds; ++i)
          for (auto& v : sum) v = fma(v, a, b);
        for (auto& v : sum) sink = sink + long(reinterpret_cast<float*>(&v)[0]);
      });
    });
    best = std::max(best, 2.0 * chains * rounds * (sizeof(floats) / 4) * threads / s);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  uint32_t threads = argc > 1 ? uint32_t(std::atoi(argv[1])) : std::thread::hardware_concurrency();
  if (threads == 0 || threads > 256) {
    fmt::print(stderr, "usage: probe [THREADS]   (1 to 256)\n");
    return 2;
  }
  size_t bytes = per_thread * threads;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fmt::print(stderr, "probe: cannot map {} bytes\n", bytes);
    return 1;
  }
  madvise(memory, bytes, MADV_HUGEPAGE);
  for (size_t i = 0; i < bytes; i += 64) static_cast<char*>(memory)[i] = char(i >> 6);
  double read = 0;
  const char* how = "";
  for (const auto& r : readers) {
    double now = best_read(static_cast<const char*>(memory), threads, r.read);
    if (now > read) read = now, how = r.name;
  }
  fmt::print(
      "{{\"threads\":{},\"read_gb_per_s\":{:.2f},\"read_by\":\"{}\",\"fma_gflop_per_s\":{:.1f}}}\n",
      threads, read / 1e9, how, best_fma(threads) / 1e9);
}
