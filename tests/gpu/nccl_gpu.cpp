#include <cuda_runtime_api.h>

#include <cstdio>
#include <string_view>

#include "parallel/cuda/cuda_accelerator.hpp"
#include "tests/gpu/nccl_bench.hpp"
#include "tests/gpu/nccl_checks.hpp"

// A world of one rank over NCCL on the GPU that is here: the checks of the emulated test, and with
// --bench COMMIT what an all-reduce takes beside the device's copy, as lines of JSON.

namespace lethe::testing {
namespace {

int skip(const std::string& why) {
  std::printf("skipped: %s\n", why.c_str());
  return 77;
}
int fail_with(const std::string& why) {
  std::printf("FAILED: %s\n", why.c_str());
  return 1;
}

void print(const char* name, const call_times& t, size_t bytes) {
  std::printf(
      ", \"%s_us\": {\"p10\": %.3f, \"median\": %.3f, \"p90\": %.3f}, \"%s_gb_per_s\": %.3f", name,
      t.p10, t.median, t.p90, name, double(bytes) / t.median / 1e3);
}

/// Bytes per second are those of the payload: each is read once and written once.
void bench(const nccl_place& p, const std::string& commit) {
  std::vector<size_t> sizes;
  for (size_t bytes = 4; bytes <= size_t{64} << 20; bytes *= 4) sizes.push_back(bytes);
  cudaDeviceProp device;
  must(cudaGetDeviceProperties(&device, 0));
  int nccl = 0, driver = 0;
  p.library.get_version(&nccl);
  must(cudaDriverGetVersion(&driver));
  for (const all_reduce_figure& f : bench_all_reduce(p, sizes, 100, 31)) {
    std::printf(
        "{\"bench\": \"nccl_all_reduce_graph\", \"gpu\": \"%s\", \"driver\": %d, \"nccl\": %d, "
        "\"commit\": \"%s\", \"ranks\": 1, \"bytes\": %zu, \"registered\": %s",
        device.name, driver, nccl, commit.c_str(), f.bytes, f.registered ? "true" : "false");
    print("all_reduce", f.all_reduce, f.bytes);
    print("copy", f.copy, f.bytes);
    std::printf("}\n");
    std::fflush(stdout);
  }
}

int check_all(const nccl_place& p) {
  int failed = 0;
  for (const nccl_check& c : nccl_checks()) {
    std::string wrong = outcome_of(c, p);
    std::printf("%s: %s\n", c.name, wrong.empty() ? "ok" : wrong.c_str());
    failed += !wrong.empty();
  }
  return failed != 0;
}

/// Once all that the checks use of it, so that what it starts for that is there before NCCL is.
void use_cuda(const nccl_place& p) {
  values_on<float> x(p, 1000);
  graph_on wipes(p.on, [&] { must(x.wipe()); });
  wipes.queue();
  must(p.on.finish());
}

/// The environment first, as a rank's process does.
int run(const char* commit) {
  const nccl_pins pins{.interface = "lo", .staging = {}};
  if (auto closed = close_nccl_environment(pins); !closed) return fail_with(closed.why().text);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return skip("no GPU");
  auto gpu = open_cuda(0);
  if (!gpu) return fail_with(gpu.why().text);
  nccl_place place{**gpu, cuda, {}, pins, {}};
  use_cuda(place);
  place.before = process_state::now();
  auto library = load_nccl();
  if (!library) {
    const std::string& why = library.why().text;
    return why.find("cannot load") != std::string::npos ? skip(why) : fail_with(why);
  }
  place.library = *library;
  int failed = check_all(place);
  if (failed == 0 && commit != nullptr) bench(place, commit);
  return failed;
}

}  // namespace
}  // namespace lethe::testing

int main(int count, char** words) {
  bool benches = count == 3 && std::string_view(words[1]) == "--bench";
  if (count != 1 && !benches) {
    std::printf("usage: %s [--bench COMMIT]\n", words[0]);
    return 2;
  }
  try {
    return lethe::testing::run(benches ? words[2] : nullptr);
  } catch (const std::runtime_error& e) {
    return lethe::testing::fail_with(e.what());
  }
}
