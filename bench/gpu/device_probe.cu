#include "bench/gpu/device_probe.hpp"

#include "bench/gpu/cublaslt.hpp"
#include "bench/gpu/matrix_peak.cuh"

namespace lethe {

namespace {

constexpr uint32_t large = 8192;

class probe final : public device_probe {
 public:
  explicit probe(const std::string& commit) : b_(open_bench(commit)) {}
  std::string name() const override { return b_.device; }
  size_t free_bytes() const override {
    size_t free = 0, all = 0;
    must(cudaMemGetInfo(&free, &all), "the device's memory");
    return free;
  }
  double copy_bytes_per_s() override {
    bench_copy(b_);
    return b_.copy_bytes_per_s;
  }
  matrix_peaks peaks() override {
    return {.bf16 = bench_peak<device::product_type::bf16>(b_, "bf16", 0x3f803f80),
            .int8 = bench_peak<device::product_type::s8>(b_, "s8", 0x01010101),
            .bf16_cublaslt = cublaslt_peak()};
  }

 private:
  /// Of ones, whose sums are exact.
  double cublaslt_peak() {
    auto product = open_cublaslt(large, large, large);
    if (product == nullptr) return 0;
    room<uint16_t> ones(std::vector<uint16_t>(size_t{large} * large, 0x3f80));
    room<float> y(size_t{large} * large);
    auto run = [&](int) {
      return product->multiply(ones.data(), ones.data(), y.data(), b_.stream);
    };
    must(run(0), "cuBLASLt's product");
    for (float sum : y.read()) require(sum == float(large), "cuBLASLt's ones make not that");
    spread us = time_of(b_, run);
    double rate = 2.0 * large * large * large / (us.median * 1e-6);
    say_peak(b_, "bf16", "cublasLt", us, rate);
    return rate;
  }

  bench b_;
};

}  // namespace

std::unique_ptr<device_probe> open_probe(const std::string& commit) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return nullptr;
  return std::make_unique<probe>(commit);
}

}  // namespace lethe
