#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/cuda/launch.cuh"

// How a device's work is timed and told.

namespace lethe {

namespace {

constexpr int warm_ups = 5, timed_runs = 50;
constexpr size_t fewest_runs = 5;
constexpr double enough_us = 0.5e6;
constexpr size_t copied_bytes = size_t{1} << 29;

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

/// It is there then: cudaMemcpy alone returns before, and the kernels' stream waits for no other.
inline void copy_in(void* to, const void* from, size_t bytes) {
  must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "a copy");
  must(cudaDeviceSynchronize(), "a copy");
}

/// Memory on the device.
template <class T>
class room {
 public:
  explicit room(size_t count) : count_(count) {
    must(cudaMalloc(&at_, count * sizeof(T)), "memory on the device");
  }
  explicit room(const std::vector<T>& values) : room(values.size()) {
    copy_in(at_, values.data(), count_ * sizeof(T));
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
  double copy_bytes_per_s = 0, s8_ops_per_s = 0, bf16_ops_per_s = 0;
};

bench open_bench(const std::string& commit) {
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
  return b;
}

/// Microseconds of run(i) for i = 0, 1, ...; fewer times what takes long.
template <class F>
spread time_of(const bench& b, F run) {
  std::vector<double> us;
  double all = 0;
  for (int i = 0; i < warm_ups + timed_runs; i++) {
    if (us.size() >= fewest_runs && all > enough_us) break;
    must(cudaEventRecord(b.begin, b.stream), "an event");
    must(run(i), "a launch");
    must(cudaEventRecord(b.end, b.stream), "an event");
    must(cudaEventSynchronize(b.end), "a kernel");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, b.begin, b.end), "a time");
    all += double(ms) * 1e3;
    if (i >= warm_ups) us.push_back(double(ms) * 1e3);
  }
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us[us.size() / 10], us[us.size() * 9 / 10]};
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

}  // namespace
}  // namespace lethe
