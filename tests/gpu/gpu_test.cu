#include <cstdio>
#include <cstdlib>

#include "tests/cuda/target.hpp"

// The checks of the emulated test, on a GPU: every launcher against the reference row, arithmetic
// by tensor cores within its bounds and with the same bits in any company, and a step's worth of
// them captured as a graph, which a launcher that allocates or waits would break.
//   gpu_test [BEGIN]   only checks whose names begin so

namespace lethe {
namespace {

void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("FAILED: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

void* take(size_t bytes) {
  void* p = nullptr;
  must(cudaMalloc(&p, bytes ? bytes : 1), "cudaMalloc");
  return p;
}
void give(void* p, size_t) { must(cudaFree(p), "cudaFree"); }
void copy_in(void* to, const void* from, size_t bytes) {
  must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copy to the device");
  // It returns before the bytes are there, and the kernels' stream waits for no other.
  must(cudaDeviceSynchronize(), "copy to the device");
}
void copy_out(void* to, const void* from, size_t bytes) {
  must(cudaDeviceSynchronize(), "a kernel");
  must(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copy from the device");
}

/// y = silu(norm(x)) * norm(x), and a draw from it: captured once, run again on other numbers.
std::string graph(const target& t) {
  constexpr uint32_t cols = 777;
  std::vector<float> ones(cols, 1.0f), first(cols), second(cols);
  for (uint32_t i = 0; i < cols; i++) first[i] = float(i % 13) - 6, second[i] = float(i % 7) - 2;
  room<float> x(t, first), gain(t, ones), normed(t, ones), y(t, ones);
  room<uint32_t> id(t, {cols}), places(t, std::vector<uint32_t>(2 * draw_whole(cols)));
  room<float> weights(t, std::vector<float>(draw_whole(cols)));
  room<row_draw> how(t, {{.typical_p = 0.9f, .top_p = 0.7f, .u = 0.4}});
  auto run = [&](device_stream s) {
    return t.row->rms_norm(x.data(), cols, gain.data(), {normed.data(), cols}, 1, cols, 1e-5f, s) |
           t.row->silu_multiply(normed.data(), normed.data(), {y.data()}, cols, s) |
           t.row->draw(
               {y.data(), cols, cols, how.data(), 1, weights.data(), places.data(), id.data()}, s);
  };
  copy_in(x.data(), second.data(), cols * sizeof(float));
  if (run(t.stream) != 0) return "a launch failed";
  std::vector<float> want = y.read();
  std::vector<uint32_t> want_id = id.read();

  cudaGraph_t captured;
  cudaGraphExec_t ready;
  copy_in(x.data(), first.data(), cols * sizeof(float));
  must(cudaStreamBeginCapture(t.stream, cudaStreamCaptureModeGlobal), "begin of a capture");
  device_error error = run(t.stream);
  must(cudaStreamEndCapture(t.stream, &captured), "a capture");
  must(cudaGraphInstantiate(&ready, captured, 0), "a graph");
  copy_in(x.data(), second.data(), cols * sizeof(float));
  must(cudaGraphLaunch(ready, t.stream), "a graph's launch");
  bool same = error == 0 && same_bits_of(y.read(), want) && same_bits_of(id.read(), want_id);
  must(cudaGraphExecDestroy(ready), "a graph's end");
  must(cudaGraphDestroy(captured), "a capture's end");
  return same ? "" : "a graph gives other bits";
}

int run_all(std::string_view begin) {
  cudaStream_t stream;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  size_t run = 0, failed = 0;
  for (auto [row, checks] : {std::pair(&cuda, joined(all_checks(), {{"graph", graph}})),
                             std::pair(&cuda_tensor, tensor_checks())}) {
    target t{row, stream, take, give, copy_in, copy_out};
    for (const check& c : checks) {
      if (!c.name.starts_with(begin)) continue;
      std::string said = c.run(t);
      std::printf("%-40s %s\n", c.name.c_str(), said.empty() ? "ok" : said.c_str());
      std::fflush(stdout);
      run++;
      failed += !said.empty();
    }
  }
  std::printf("%zu checks, %zu failed\n", run, failed);
  return failed != 0 || run == 0;
}

}  // namespace
}  // namespace lethe

int main(int count, char** words) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU\n");
    return 77;
  }
  cudaDeviceProp device;
  lethe::must(cudaGetDeviceProperties(&device, 0), "the device's properties");
  std::printf("%s, sm_%d%d\n", device.name, device.major, device.minor);
  return lethe::run_all(count > 1 ? words[1] : "");
}
