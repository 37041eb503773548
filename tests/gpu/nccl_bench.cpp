#include "tests/gpu/nccl_bench.hpp"

#include <algorithm>
#include <chrono>

namespace lethe::testing {
namespace {

constexpr uint32_t warm_up = 5;

call_times time(const nccl_place& p, nccl_world& w, graph_on& graph, uint32_t calls,
                uint32_t runs) {
  using clock = std::chrono::steady_clock;
  std::vector<double> all;
  for (uint32_t i = 0; i < warm_up + runs; ++i) {
    auto begin = clock::now();
    graph.queue();
    must(p.on.finish());
    if (i >= warm_up)
      all.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count() /
                    calls);
  }
  must(w.health());
  std::ranges::sort(all);
  return {all[all.size() / 10], all[all.size() / 2], all[all.size() * 9 / 10]};
}

/// In the world's memory, from its first half to its second.
all_reduce_figure figure(const nccl_place& p, size_t bytes, uint32_t calls, uint32_t runs) {
  const size_t count = bytes / sizeof(float);
  auto world = must(p.join());
  auto m = must(world->allocate(2 * bytes));
  auto *from = static_cast<float*>(m.at), *to = from + count;
  auto add_up = [&](const float* x, float* y) {
    must(world->world().all_reduce(x, y, count, element::f32, p.on.stream()));
  };
  values_on<float> x(p, count, 3), y(p, count);
  add_up(x.data(), from);
  add_up(from, to);
  add_up(to, y.data());
  finish(*world, p.on);
  if (y.read() != std::vector<float>(count, 3)) throw std::runtime_error("wrong sums");
  all_reduce_figure f{.bytes = bytes, .all_reduce = {}, .copy = {}, .registered = m.registered};
  {
    graph_on sums(p.on, [&] {
      for (uint32_t i = 0; i < calls; ++i) add_up(from, to);
    });
    f.all_reduce = time(p, *world, sums, calls, runs);
    graph_on copies(p.on, [&] {
      for (uint32_t i = 0; i < calls; ++i) must(p.on.copy(y.data(), x.data(), bytes));
    });
    f.copy = time(p, *world, copies, calls, runs);
  }
  must(p.row.wipe(static_cast<std::byte*>(m.at), m.bytes, p.on.stream()));
  finish(*world, p.on);
  must(world->close());
  return f;
}

}  // namespace

std::vector<all_reduce_figure> bench_all_reduce(const nccl_place& p,
                                                const std::vector<size_t>& bytes, uint32_t calls,
                                                uint32_t runs) {
  std::vector<all_reduce_figure> all;
  for (size_t each : bytes) all.push_back(figure(p, each, calls, runs));
  return all;
}

}  // namespace lethe::testing
