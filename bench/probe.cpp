// The machine's limits, as one line of JSON: what other programs' numbers are measured against.
// Each limit is the best of several ways to get there, since a weak probe flatters.

#include <fmt/format.h>
#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "bench/beyond_caches.hpp"

namespace {

using steady = std::chrono::steady_clock;
/// What a thread reads in a round.
constexpr size_t per_thread = size_t{256} << 20;

/// All threads' memory for some rounds; each takes the next part, so that what it reads is in
/// memory, not in a large cache that has it from the round before.
class rounds_of_memory {
 public:
  rounds_of_memory(const char* at, uint32_t threads, size_t rounds)
      : at_(at), a_round_(per_thread * threads), rounds_(rounds) {}
  /// Of the next round; its threads' parts lie one behind the other.
  const char* next() { return at_ + next_++ % rounds_ * a_round_; }

 private:
  const char* at_;
  size_t a_round_, rounds_, next_ = 0;
};

/// What came out, so that no compiler leaves the work out.
std::atomic<uint64_t> sink;

struct variant {
  std::string name;
  void (*work)(const char* memory);  // one thread's part of a round
  double per_round;                  // bytes or operations of it
};
struct best {
  double per_second = 0;
  std::string by;
};

std::vector<int> own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &set)) cores.push_back(c);
  return cores;
}

void stay_on(const std::vector<int>& cores, uint32_t thread) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[thread % cores.size()], &set);
  sched_setaffinity(0, sizeof set, &set);
}

/// Seconds of each of `rounds` rounds of the work: all threads, each on its core, begin together.
std::vector<double> time_rounds(rounds_of_memory& memory, uint32_t threads, int rounds,
                                void (*work)(const char*)) {
  auto cores = own_cores();
  std::atomic<uint32_t> arrived = 0;
  std::vector<double> took;
  std::vector<const char*> parts;
  for (int r = 0; r < rounds; ++r) parts.push_back(memory.next());
  auto meet = [&arrived, threads](uint32_t nth) {
    arrived.fetch_add(1);
    while (arrived.load() < nth * threads) _mm_pause();
  };
  auto run = [&, rounds, work](uint32_t t) {
    stay_on(cores, t);
    uint32_t meetings = 0;
    for (int r = 0; r < rounds; ++r) {
      meet(++meetings);
      auto begin = steady::now();
      work(parts[size_t(r)] + t * per_thread);
      meet(++meetings);
      if (t == 0) took.push_back(std::chrono::duration<double>(steady::now() - begin).count());
    }
  };
  std::vector<std::thread> team;
  for (uint32_t t = 0; t < threads; ++t) team.emplace_back(run, t);
  for (auto& t : team) t.join();
  return took;
}

double rate(const variant& v, rounds_of_memory& memory, uint32_t threads, int rounds) {
  auto took = time_rounds(memory, threads, rounds, v.work);
  return v.per_round * threads / *std::ranges::min_element(took);
}

/// A few rounds of each way, then more of the three best: one that met a busy moment has a second.
best best_of(const char* what, const std::vector<variant>& ways, rounds_of_memory& memory,
             uint32_t threads, bool show) {
  std::vector<std::pair<double, const variant*>> seen;
  for (const variant& v : ways) seen.emplace_back(rate(v, memory, threads, 2), &v);
  std::ranges::sort(seen, std::greater<>{}, [](const auto& s) { return s.first; });
  for (size_t i = 0; i < std::min<size_t>(3, seen.size()); ++i)
    seen[i].first = std::max(seen[i].first, rate(*seen[i].second, memory, threads, 6));
  if (show)
    for (const auto& [r, v] : seen)
      fmt::print(
          "{{\"what\":\"probe_variant\",\"of\":\"{}\",\"by\":\"{}\",\"giga_per_s\":{:.2f}}}\n",
          what, v->name, r / 1e9);
  auto top = std::ranges::max_element(seen, {}, [](const auto& s) { return s.first; });
  return {top->first, top->second->name};
}

#if defined(__AVX512F__)
using ints = __m512i;
using floats = __m512;
inline ints load(const char* p) { return _mm512_load_si512(p); }
inline ints mix(ints a, ints b) { return _mm512_xor_si512(a, b); }
inline ints add(ints a, ints b) { return _mm512_add_epi32(a, b); }
inline ints bytes_of(char v) { return _mm512_set1_epi8(v); }
inline floats fma(floats a, floats b, floats c) { return _mm512_fmadd_ps(a, b, c); }
inline floats all(float v) { return _mm512_set1_ps(v); }
#else
using ints = __m256i;
using floats = __m256;
inline ints load(const char* p) { return _mm256_load_si256(reinterpret_cast<const ints*>(p)); }
inline ints mix(ints a, ints b) { return _mm256_xor_si256(a, b); }
inline ints add(ints a, ints b) { return _mm256_add_epi32(a, b); }
inline ints bytes_of(char v) { return _mm256_set1_epi8(v); }
inline floats fma(floats a, floats b, floats c) { return _mm256_fmadd_ps(a, b, c); }
inline floats all(float v) { return _mm256_set1_ps(v); }
#endif

void keep(ints v) {
  alignas(64) uint64_t words[sizeof v / 8];
  __builtin_memcpy(words, &v, sizeof v);
  sink += words[0] ^ words[1];
}

enum class ahead { none, near, far, near_l2, far_l2 };
constexpr const char* names_of_ahead[] = {"no prefetch", "prefetch 1 KiB", "prefetch 4 KiB",
                                          "prefetch 2 KiB to L2", "prefetch 8 KiB to L2"};

template <ahead how>
inline void fetch(const char* p) {
  if constexpr (how == ahead::near) _mm_prefetch(p + 1024, _MM_HINT_T0);
  if constexpr (how == ahead::far) _mm_prefetch(p + 4096, _MM_HINT_T0);
  if constexpr (how == ahead::near_l2) _mm_prefetch(p + 2048, _MM_HINT_T1);
  if constexpr (how == ahead::far_l2) _mm_prefetch(p + 8192, _MM_HINT_T1);
}

/// Reads a thread's memory in `streams` equal parts side by side.
template <int streams, ahead how>
void read_all(const char* at) {
  constexpr size_t part = per_thread / streams;
  ints sum[streams] = {};
  for (size_t i = 0; i < part; i += 64) {
#pragma GCC unroll 8
    for (int s = 0; s < streams; ++s) {
      const char* p = at + size_t(s) * part + i;
      fetch<how>(p);
#pragma GCC unroll 2
      for (size_t j = 0; j < 64; j += sizeof(ints)) sum[s] = mix(sum[s], load(p + j));
    }
  }
  for (int s = 1; s < streams; ++s) sum[0] = mix(sum[0], sum[s]);
  keep(sum[0]);
}

template <int streams, ahead how>
variant reader() {
  return {fmt::format("{} stream{} a thread, {}", streams, streams == 1 ? "" : "s",
                      names_of_ahead[int(how)]),
          read_all<streams, how>, double(per_thread)};
}
template <int streams>
void add_readers(std::vector<variant>& to) {
  to.push_back(reader<streams, ahead::none>());
  to.push_back(reader<streams, ahead::near>());
  to.push_back(reader<streams, ahead::far>());
  to.push_back(reader<streams, ahead::near_l2>());
  to.push_back(reader<streams, ahead::far_l2>());
}

/// Vector instructions of one thread in one round, whatever the number of chains: 15 to 30 ms.
constexpr uint64_t per_chains = 60'000'000;

/// What a chain begins with is unknown to the compiler, which would make one of equal ones.
inline void begin_chain(auto& v) { asm volatile("" : "+x"(v)); }

/// Chains that do not wait for each other; enough of them fill every port.
template <int chains>
void multiply_floats(const char*) {
  floats sum[chains], a = all(1.0000001f), b = all(1e-9f);
  for (auto& v : sum) begin_chain(v = all(1.0f));
  for (uint64_t i = 0; i < per_chains / chains; ++i)
#pragma GCC unroll 32
    for (int c = 0; c < chains; ++c) sum[c] = fma(sum[c], a, b);
  ints out = {};
  for (auto& v : sum) out = mix(out, (ints)v);
  keep(out);
}

template <int chains>
variant float_products() {
  constexpr uint64_t done = per_chains / chains * chains;
  return {fmt::format("{} chains", chains), multiply_floats<chains>,
          double(done) * 2 * (sizeof(floats) / 4)};
}

// computes_alike: products of the same bytes would be computed once for all chains, unless the
// bytes are unknown each time.
#if defined(__AVX512VNNI__)
constexpr const char* int8_by = "vpdpbusd";
constexpr bool computes_alike = false;
inline ints products(ints sum, ints a, ints b, ints) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));  // g++ 12 copies sums to and fro
  return sum;
}
#elif defined(__AVXVNNI__)
constexpr const char* int8_by = "vpdpbusd";
constexpr bool computes_alike = false;
inline ints products(ints sum, ints a, ints b, ints) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  return sum;
}
#elif defined(__AVX512BW__)
constexpr const char* int8_by = "vpmaddubsw + vpmaddwd";
constexpr bool computes_alike = true;
inline ints products(ints sum, ints a, ints b, ints ones) {
  return add(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), ones));
}
#else
constexpr const char* int8_by = "vpmaddubsw + vpmaddwd";
constexpr bool computes_alike = true;
inline ints products(ints sum, ints a, ints b, ints ones) {
  return add(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
}
#endif

template <int chains>
void multiply_bytes(const char*) {
  ints sum[chains] = {}, a = bytes_of(2), b = bytes_of(3), ones = bytes_of(1);
  for (auto& v : sum) begin_chain(v);
  for (uint64_t i = 0; i < per_chains / chains; ++i)
#pragma GCC unroll 32
    for (int c = 0; c < chains; ++c) {
      if constexpr (computes_alike) asm volatile("" : "+x"(a));
      sum[c] = products(sum[c], a, b, ones);
    }
  for (int c = 1; c < chains; ++c) sum[0] = mix(sum[0], sum[c]);
  keep(sum[0]);
}

template <int chains>
variant byte_products() {
  constexpr uint64_t done = per_chains / chains * chains;
  return {fmt::format("{}, {} chains", int8_by, chains), multiply_bytes<chains>,
          double(done) * 2 * sizeof(ints)};
}

// Registers of tiles, 16 rows of 64 bytes: products of four and their sums a row and a column at a
// time. Linux saves them for processes that ask for it.
#if defined(__AMX_INT8__)
bool may_use_tiles() {
  constexpr long ask_for_state = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, ask_for_state, tile_data) == 0;
}

template <bool bytes>
void multiply_tiles(const char*) {
  struct {
    uint8_t palette = 1, nothing[15] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } shape;
  asm volatile("ldtilecfg %0" ::"m"(shape));
  for (uint64_t i = 0; i < per_chains / 64; ++i) {
    if constexpr (bytes)
      asm volatile(
          "tdpbssd %tmm4, %tmm6, %tmm0\n\ttdpbssd %tmm5, %tmm6, %tmm1\n\t"
          "tdpbssd %tmm4, %tmm7, %tmm2\n\ttdpbssd %tmm5, %tmm7, %tmm3");
    else
      asm volatile(
          "tdpbf16ps %tmm4, %tmm6, %tmm0\n\ttdpbf16ps %tmm5, %tmm6, %tmm1\n\t"
          "tdpbf16ps %tmm4, %tmm7, %tmm2\n\ttdpbf16ps %tmm5, %tmm7, %tmm3");
  }
  asm volatile("tilerelease");
}

constexpr double of_four_tiles = double(per_chains / 64) * 4 * 2 * 16 * 16 * 64;

std::vector<variant> ways_with_tiles() {
  if (!may_use_tiles()) return {};
  return {{"tdpbssd, 4 chains", multiply_tiles<true>, of_four_tiles}};
}
#else
std::vector<variant> ways_with_tiles() { return {}; }
#endif

// Half as many numbers of two bytes.
#if defined(__AMX_BF16__)
std::vector<variant> ways_with_float_tiles() {
  if (!may_use_tiles()) return {};
  return {{"tdpbf16ps, 4 chains", multiply_tiles<false>, of_four_tiles / 2}};
}
#else
std::vector<variant> ways_with_float_tiles() { return {}; }
#endif

std::vector<variant> ways_to_read() {
  std::vector<variant> ways;
  add_readers<1>(ways);
  add_readers<2>(ways);
  add_readers<4>(ways);
  add_readers<8>(ways);
  return ways;
}
std::vector<variant> ways_with_floats() {
  return {float_products<8>(), float_products<10>(), float_products<12>(), float_products<16>(),
          float_products<24>()};
}
std::vector<variant> ways_with_bytes() {
  return {byte_products<8>(), byte_products<10>(), byte_products<12>(), byte_products<16>(),
          byte_products<24>()};
}

/// In pages of 2 MiB where the system gives them, and written to, else all of it is one zero page.
char* map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_HUGEPAGE);
  char* at = static_cast<char*>(memory);
  for (size_t i = 0; i < bytes; i += 64) at[i] = char(i >> 6);
  return at;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measures the machine's limits: reading, float and int8 products", "probe"};
  uint32_t threads = std::thread::hardware_concurrency();
  bool show = false;
  app.add_option("THREADS", threads, "each on a core of its own")->check(CLI::Range(1u, 256u));
  app.add_flag("--all", show, "print every variant, not only the best");
  CLI11_PARSE(app, argc, argv);
  size_t a_round = per_thread * threads, rounds = lethe::bench::rounds_beyond_caches(a_round);
  char* mapped = map(rounds * a_round);
  if (!mapped) {
    fmt::print(stderr, "probe: cannot map {} MiB; free some memory or use fewer threads\n",
               (rounds * a_round) >> 20);
    return 1;
  }
  rounds_of_memory memory(mapped, threads, rounds);
  best read = best_of("read", ways_to_read(), memory, threads, show);
  best floats_best = best_of("fma", ways_with_floats(), memory, threads, show);
  best bytes_best = best_of("int8", ways_with_bytes(), memory, threads, show);
  std::string tiles;
  if (auto ways = ways_with_tiles(); !ways.empty()) {
    best tiles_best = best_of("int8 in tiles", ways, memory, threads, show);
    tiles = fmt::format(",\"tile_gop_per_s\":{:.1f},\"tile_by\":\"{}\"",
                        tiles_best.per_second / 1e9, tiles_best.by);
  }
  if (auto ways = ways_with_float_tiles(); !ways.empty()) {
    best tiles_best = best_of("bf16 in tiles", ways, memory, threads, show);
    tiles += fmt::format(",\"tile_gflop_per_s\":{:.1f},\"float_tile_by\":\"{}\"",
                         tiles_best.per_second / 1e9, tiles_best.by);
  }
  fmt::print(
      "{{\"what\":\"probe\",\"threads\":{},\"read_gb_per_s\":{:.2f},\"read_by\":\"{}\","
      "\"fma_gflop_per_s\":{:.1f},\"fma_by\":\"{}\",\"int8_gop_per_s\":{:.1f},\"int8_by\":\"{}\"{}}"
      "}"
      "\n",
      threads, read.per_second / 1e9, read.by, floats_best.per_second / 1e9, floats_best.by,
      bytes_best.per_second / 1e9, bytes_best.by, tiles);
}
