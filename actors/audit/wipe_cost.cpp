#include "actors/audit/wipe_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "actors/audit/canary.hpp"
#include "runtime/arena/arena.hpp"

namespace lethe::audit {

namespace {

using steady = std::chrono::steady_clock;
constexpr size_t wiped_bytes = size_t{64} << 20;
constexpr int rounds = 7;

double seconds_since(steady::time_point begin) {
  return std::chrono::duration<double>(steady::now() - begin).count();
}

struct speeds {
  double machine = 0, wipe = 0;  // bytes a second, the best of some rounds by turns
};

/// An arena's end beside plain zeroes over memory that is there.
std::optional<speeds> wipe_speeds() {
  std::vector<std::byte> plain(wiped_bytes, std::byte{1});
  speeds best;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = steady::now();
    std::memset(plain.data(), i, plain.size());
    asm volatile("" : : "r"(plain.data()) : "memory");
    best.machine = std::max(best.machine, double(wiped_bytes) / seconds_since(begin));
    auto a = arena::make(wiped_bytes);
    void* at = a ? a->take(wiped_bytes) : nullptr;
    if (!at) return {};
    std::memset(at, 1, wiped_bytes);
    const auto report = a->destroy();
    best.wipe = std::max(best.wipe, double(report.bytes) * 1e9 / double(report.nanoseconds));
  }
  return best;
}

/// What answers took, and what was wiped for each.
struct answers {
  double median_s = 0;
  uint64_t bytes = 0;
};

result<answers> timed(const no_trace_settings& s, const std::string& program) {
  auto settings = s.cluster;
  settings.program = program;
  settings.shape = "size";  // a tick would hide it
  auto on = embedded_cluster::start(settings);
  if (!on) return on.why();
  auto words = canary::draw(settings.model);
  if (!words) return words.why();
  std::vector<double> took;
  answers a;
  for (int i = 0; i < (s.brief ? 6 : 30); ++i) {
    const auto begin = steady::now();
    auto one =
        (*on)->ask(words->body(fmt::format(R"(,"max_tokens":64,"ignore_eos":true,"seed":{})", i)));
    took.push_back(seconds_since(begin));
    if (!one.proof) return fail("no whole answer: {}", one.why);
    a.bytes = one.proof->bytes_wiped;
  }
  std::ranges::nth_element(took, took.begin() + long(took.size() / 2));
  a.median_s = took[took.size() / 2];
  return a;
}

}  // namespace

result<finding> measure_wipe_cost(const no_trace_settings& s) {
  s.progress("timing what forgetting costs");
  auto fast = wipe_speeds();
  if (!fast) return fail("no memory for {} MiB", wiped_bytes >> 20);
  auto with = timed(s, s.cluster.program);
  if (!with) return with.why();
  // What relies on wiped memory may fail there; then there is nothing to compare.
  auto without = timed(s, (s.controls / "lethe_wipes_nothing").string());
  const double wipe_s = double(with->bytes) / fast->wipe;
  return finding{
      .promise = "S",
      .attacks = "G7",
      .what = "what forgetting costs",
      .measured = fmt::format(
          "{:.1f} GB/s of the machine's {:.1f} ({:.2f}); {:.0f} KiB and {:.0f} us of an answer "
          "of {:.1f} ms ({:.2f} %)",
          fast->wipe / 1e9, fast->machine / 1e9, fast->wipe / fast->machine,
          double(with->bytes) / 1024, wipe_s * 1e6, with->median_s * 1e3,
          100 * wipe_s / with->median_s),
      .bound = "stated",
      .said = verdict::held,
      .note = fmt::format(
          "64 MiB of an arena at its end, unmapping included, beside memset of memory that is "
          "there, by turns. Answers of 64 tokens, unshaped in time: {:.1f} ms with wiping, {} by a "
          "program that wipes nothing (medians).",
          with->median_s * 1e3,
          without ? fmt::format("{:.1f} ms", without->median_s * 1e3) : "none whole")};
}

}  // namespace lethe::audit
