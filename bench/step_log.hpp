#pragma once

#include <atomic>
#include <vector>

#include "runtime/batch/engine.hpp"

namespace lethe::bench {

/// One step as the step loop saw it, in nanoseconds.
struct logged_step {
  uint32_t entries, tokens;
  uint64_t keys;  // that its tokens' queries see, over all entries
  uint64_t submitted, done, attention;
};

/// Keeps all steps of an engine. `steps` is read when nothing runs; `of_size` at any time.
class step_log final : public step_watcher {
 public:
  static constexpr uint32_t sizes = 65;

  void stepped(const step_plan& plan, uint64_t submitted_ns, uint64_t done_ns) override {
    uint64_t attention = serving ? serving->ranks().rank(0).times().attention : 0;
    logged_step s{uint32_t(plan.entries.size()),
                  plan.tokens,
                  0,
                  submitted_ns,
                  done_ns,
                  attention - std::exchange(before_, attention)};
    for (const auto& e : plan.entries)
      s.keys += uint64_t{e.tokens} * e.position + uint64_t{e.tokens} * (e.tokens + 1) / 2;
    steps.push_back(s);
    bool decodes = s.entries == s.tokens && s.tokens < sizes;
    if (decodes) of_size_[s.tokens].fetch_add(1, std::memory_order_release);
  }

  /// How many steps have decoded that many streams and nothing else.
  uint32_t of_size(uint32_t streams) const {
    return of_size_[streams].load(std::memory_order_acquire);
  }
  void clear() {
    steps.clear();
    for (auto& n : of_size_) n.store(0);
  }

  const engine* serving = nullptr;
  std::vector<logged_step> steps;

 private:
  uint64_t before_ = 0;
  std::atomic<uint32_t> of_size_[sizes] = {};
};

}  // namespace lethe::bench
