#pragma once

#include "tests/cuda/emulated_device.hpp"
#include "tests/cuda/emulated_row.hpp"
#include "tests/unit/nccl_ranks.hpp"
#include "tests/unit/parallel_device_run.hpp"

// Ranks of a cut, as threads of the test: each has an emulated device, and a library that stands
// for NCCL between them.

namespace lethe::testing {

struct device_ranks_options {
  bool graphs = true;
  emulated::order order = emulated::order::forwards;
  fake_nccl::options nccl{};
  const cuda_row* row = &emulated_row;
};

struct device_ranks : nccl_ranks {
  device_ranks(const model_weights& w, std::vector<prompt> p, const manner& m,
               device_ranks_options o = {})
      : nccl_ranks(m.ranks, o.nccl), weights(w), prompts(std::move(p)), how(m), with(o) {
    timeout = std::chrono::milliseconds(60'000);  // devices are slow
    for (uint32_t r = 0; r < size(); ++r) {
      auto& d = devices.emplace_back(std::make_unique<emulated::device>(o.order));
      fake.serve(d->stream(),
                 {.enqueue = [d = d.get()](device_call c) { d->enqueue(std::move(c)); },
                  .capturing = [d = d.get()] { return d->capturing(); }});
    }
    shards.resize(size());
    errors.resize(size());
    for (uint32_t r = 0; r < size(); ++r) {
      auto loaded = load_on(*devices[r], weights, shard_config_for(weights, prompts, how, r).part);
      if (!loaded) throw std::runtime_error(loaded.why().text);
      parts.push_back(*std::move(loaded));
    }
  }

  void make_one(uint32_t r, nccl_world& w) {
    auto made = device_shard::make(*devices[r], *with.row, std::move(parts[r]),
                                   {shard_config_for(weights, prompts, how, r), with.graphs}, &w);
    errors[r] = made ? "" : made.why().text;
    if (made) shards[r] = *std::move(made);
  }
  void make() {
    all([this](uint32_t r, nccl_world& w) { make_one(r, w); });
  }
  void start() {
    join();
    make();
    for (const std::string& e : errors)
      if (!e.empty()) throw std::runtime_error(e);
  }

  uint32_t answering() const { return size() - shape.tensor; }
  /// What a rank is told of a step: no more than it needs.
  step_data data_of(uint32_t r, planned& step) {
    step_data data = r == answering() ? step.data(weights.shape.vocab) : step_data{};
    data.token_ids = r < shape.tensor ? step.ids.data() : nullptr;
    return data;
  }
  /// One step, on all ranks but those that do something else.
  void execute(planned& step, const std::map<uint32_t, std::function<void()>>& but = {}) {
    all([&](uint32_t r, nccl_world&) {
      if (auto other = but.find(r); other != but.end()) return other->second();
      auto done = shards[r]->execute(step.plan, data_of(r, step));
      errors[r] = done ? "" : done.why().text;
    });
  }
  void execute(step_plan plan) {
    planned step{.plan = std::move(plan), .ids = {}, .logits = {}};
    execute(step);
    expect_no_errors();
  }
  std::vector<logit_rows> run_all(const std::vector<std::unique_ptr<planned>>& steps) {
    std::vector<logit_rows> logits(prompts.size());
    all([&](uint32_t r, nccl_world&) {
      for (const auto& step : steps) {
        auto done = shards[r]->execute(step->plan, data_of(r, *step));
        if (!done) errors[r] = done.why().text;
        if (done && r == answering()) take_rows(*step, weights.shape.vocab, logits);
      }
    });
    expect_no_errors();
    return logits;
  }

  void expect_no_errors() {
    for (uint32_t r = 0; r < size(); ++r)
      EXPECT_EQ(errors[r], "") << "rank " << r << " " << devices[r]->fault();
  }
  /// Also after an error. What devices get back full are weights, and what they came through,
  /// unless there was no begin.
  void end(bool begun = true) {
    all([this, begun](uint32_t r, nccl_world& w) {
      shards[r].reset();
      (void)w.close();
      EXPECT_TRUE(!begun || devices[r]->left_full().size() == 2) << "rank " << r;
    });
    for (auto& w : worlds) w.reset();
    expect_clean();
    EXPECT_TRUE(!begun || fake.given_back_full() == 0);
  }

  const model_weights& weights;
  const std::vector<prompt> prompts;
  const manner how;
  const device_ranks_options with;
  std::vector<std::unique_ptr<emulated::device>> devices;
  std::vector<std::unique_ptr<device_weights>> parts;  // until a shard has them
  std::vector<std::unique_ptr<device_shard>> shards;
  std::vector<std::string> errors;
};

}  // namespace lethe::testing
