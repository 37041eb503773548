// Models of random weights in published shapes, whole, on the GPU that is here: decodes beside what
// a copy moves, prompts beside what tensor cores multiply. The steps are checked before, with two
// layers and few words, against a shard on cores.
//   model_bench [COMMIT [MODEL...]]; exit 77, "skipped", where there is no GPU

#include <algorithm>
#include <cstdio>
#include <span>
#include <thread>

#include "bench/gpu/llama_shapes.hpp"
#include "bench/gpu/model_check.hpp"
#include "bench/gpu/model_measure.hpp"
#include "parallel/cuda/cuda_accelerator.hpp"

namespace lethe::bench {
namespace {

// Of a device's memory, for the copies beside its steps.
constexpr uint64_t spare_bytes = uint64_t{2} << 30;

struct model {
  const char* name;
  model_shape shape;
};

void say(const std::string& line, const std::string& told) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", told.c_str());
}

/// A tenth at a time.
std::function<void(uint64_t, uint64_t)> progress_of(const std::string& what) {
  return [what, told = uint64_t{0}](uint64_t done, uint64_t all) mutable {
    if (done * 10 / all == told) return;
    told = done * 10 / all;
    std::fprintf(stderr, "%s: %.1f of %.1f GB of weights\n", what.c_str(), double(done) * 1e-9,
                 double(all) * 1e-9);
  };
}

uint32_t cores() { return std::max(1u, std::thread::hardware_concurrency()); }

result<void> check_steps(accelerator& on, const model& m, dtype type) {
  model_shape few = m.shape;
  few.layers = 2, few.vocab = 4096;
  std::fprintf(stderr, "%s %s: two layers on the device and on cores\n", m.name, name_of(type));
  auto weights = random_weights::make(few, type);
  if (!weights) return weights.why();
  auto held = held_weights::of(**weights);
  if (!held) return held.why();
  auto want = logits_on_cores(*held, cores());
  if (!want) return want.why();
  for (const cuda_row* row : {&cuda, &cuda_tensor}) {
    auto got = logits_on_device(on, *row, **weights);
    if (!got) return got.why();
    if (!are_right(row->arithmetic, type, *got, *want, few.vocab))
      return fail("{} {}: the kernels of {} give other logits than cores", m.name, name_of(type),
                  row->name);
  }
  return {};
}

result<void> bench_model(device_probe& probe, accelerator& on, const matrix_peaks& peaks,
                         const model& m, dtype type, const std::string& commit) {
  if (auto right = check_steps(on, m, type); !right) return right;
  const run_sizes sizes;
  auto weights = random_weights::make(m.shape, type);
  if (!weights) return weights.why();
  std::string what = std::string(m.name) + " " + name_of(type);
  for (const cuda_row* row : {&cuda_tensor, &cuda}) {
    uint64_t needed = device_bytes(**weights, *row, sizes) + spare_bytes, free = probe.free_bytes();
    if (needed > free) {
      std::fprintf(stderr, "skipped: %s: needs %.1f GB of the device, %.1f are free\n",
                   what.c_str(), double(needed) * 1e-9, double(free) * 1e-9);
      continue;
    }
    measuring with{.on = on,
                   .row = *row,
                   .model = m.name,
                   .device = probe.name(),
                   .commit = commit,
                   .peaks = peaks,
                   .copy_bytes_per_s = [&probe] { return probe.copy_bytes_per_s(); },
                   .say = say,
                   .loading = progress_of(what),
                   .threads = cores()};
    if (auto done = measure(with, **weights, sizes); !done) return done;
  }
  return {};
}

result<void> run_all(device_probe& probe, const std::string& commit,
                     std::span<const char* const> wanted) {
  auto on = open_cuda(0);
  if (!on) return on.why();
  const model all[] = {{"1b", shape_1b()}, {"8b", shape_8b()}};
  auto is_known = [&](std::string_view name) {
    return std::ranges::any_of(all, [name](const model& m) { return name == m.name; });
  };
  for (const char* name : wanted)
    if (!is_known(name)) return fail("no model {}; there are 1b and 8b", name);
  auto is_wanted = [&](std::string_view name) {
    return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
  };
  matrix_peaks peaks = probe.peaks();
  if (peaks.bf16_cublaslt == 0)
    std::fprintf(stderr, "no cuBLASLt: the matrix peak is that of mma.sync, which may flatter\n");
  for (const model& m : all)
    for (dtype type : {dtype::bf16, dtype::q8_0})
      if (is_wanted(m.name))
        if (auto done = bench_model(probe, **on, peaks, m, type, commit); !done) return done;
  return {};
}

}  // namespace
}  // namespace lethe::bench

int main(int argc, char** argv) {
  const std::string commit = argc > 1 ? argv[1] : "unknown";
  auto probe = lethe::open_probe(commit);
  if (!probe) {
    std::printf("skipped: no GPU\n");
    return 77;
  }
  std::span<const char* const> wanted(argv + std::min(argc, 2), argv + argc);
  if (auto done = lethe::bench::run_all(*probe, commit, wanted); !done) {
    std::printf("FAILED: %s\n", done.why().text.c_str());
    return 1;
  }
  return 0;
}
