#pragma once

#include "bench/gpu/timing.cuh"

// What tensor cores multiply out of registers.

namespace lethe {

namespace {

/// Products of ones, eight independent ones a warp, from registers: rounds * depth each.
template <device::product_type T>
struct matrix_peak {
  static constexpr uint32_t threads = 256, chains = 8, rounds = 4096, blocks = 2048;
  static constexpr device::product_facts facts = device::facts_of(T);
  static constexpr double ops =
      2.0 * 16 * 8 * facts.depth * chains * rounds * blocks * (threads / device::warp_lanes);
  uint32_t ones;
  float* sums;  // a thread's

  device::launch_shape shape() const { return {blocks}; }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    device::product_rows<T> a;
    device::product_columns<T> b;
    for (uint32_t& word : a.a) word = ones;
    for (uint32_t& word : b.b) word = ones;
    device::product_sums<T> c[chains] = {};
    for (uint32_t i = 0; i < rounds; i++) {
      for (auto& chain : c) chain = block.template multiply<T>(a, b, chain);
    }
    float all = 0.0f;
    for (const auto& chain : c) {
      for (auto sum : chain.c) all += float(sum);
    }
    sums[block.x() * threads + block.thread()] = all;
  }
};

void say_peak(const bench& b, const char* type, const char* by, const spread& us,
              double ops_per_s) {
  std::printf(
      "{\"bench\":\"matrix_peak\",\"type\":\"%s\",\"by\":\"%s\",\"us\":%.2f,\"us_p10\":%.2f,\"us_"
      "p90\":%.2f,"
      "\"tera_ops_per_s\":%.1f,\"device\":\"%s\",\"commit\":\"%s\"}\n",
      type, by, us.median, us.p10, us.p90, ops_per_s * 1e-12, b.device.c_str(), b.commit.c_str());
  std::fflush(stdout);
}

template <device::product_type T>
double bench_peak(const bench& b, const char* type, uint32_t ones) {
  using peak = matrix_peak<T>;
  room<float> sums(size_t{peak::blocks} * peak::threads);
  auto run = [&](int) { return device::gpu::launch(peak{ones, sums.data()}, b.stream); };
  must(run(0), "products of ones");
  for (float sum : sums.read()) {
    require(sum == float(peak::facts.depth) * peak::rounds * peak::chains * 4,
            "ones make not that");
  }
  spread us = time_of(b, run);
  double rate = peak::ops / (us.median * 1e-6);
  say_peak(b, type, "mma.sync", us, rate);
  return rate;
}

}  // namespace
}  // namespace lethe
