#pragma once

#include <caf/all.hpp>
#include <deque>

#include "actors/cluster/request_actor.hpp"
#include "actors/sim/ledger.hpp"
#include "runtime/batch/step_loop.hpp"

namespace lethe::sim {

/// What a token history is followed by: a pure function, so that clients know the right answer.
class next_token {
 public:
  /// One token in `stop_once_in` ends an answer; 0: none.
  next_token(const served_model& model, uint64_t stop_once_in);
  uint32_t after(std::span<const uint32_t> history) const;
  /// Ids that may stand in a prompt.
  const std::vector<uint32_t>& plain() const { return plain_; }

 private:
  std::vector<uint32_t> plain_;
  uint32_t stop_;
  uint64_t stop_once_in_;
};

/// Stands for a grid: its pages hold token ids, and logits follow from what it reads there. So a
/// page that two sequences write, or that comes unwiped, shows in the answer or at once.
class sim_ranks final : public step_ranks {
 public:
  sim_ranks(ledger& facts, const planner_config& c, uint32_t vocab);
  void submit(const step_plan& plan, const step_data& data) override;
  result<void> wait_oldest() override;

  bool fail_next = false;

 private:
  void execute(const step_plan& plan, const step_data& data);
  uint32_t& cell(const step_plan& plan, const plan_entry& e, uint32_t position);

  ledger& facts_;
  uint32_t page_tokens_, vocab_;
  next_token next_;
  std::vector<uint32_t> cells_;  // token + 1; 0: wiped
  std::deque<std::pair<const step_plan*, step_data>> flights_;
};

/// The step loop of one engine, turned by an actor of its own.
class sim_core {
 public:
  sim_core(ledger& facts, const engine_config& config, const planner_config& plan,
           step_buffers buffers);
  ~sim_core();

  void start(caf::actor_system& sys, std::shared_ptr<sim_core> self);
  void put(letter l);
  step_loop::turned turn();
  void finish();

  uint16_t slot = 0;
  uint32_t epoch = 0;
  engine_config config;
  planner_config plan;
  ledger& facts;
  sim_ranks* ranks;
  step_loop loop;
  bool dead = false;  // its ranks are lost
  uint64_t step_us = 500;
  bool turning = false;  // a turn is due
  caf::actor stepper;
};

class sim_engine final : public engine {
 public:
  static std::unique_ptr<sim_engine> make(caf::actor_system& sys, ledger& facts,
                                          const engine_config& c, uint32_t pages, uint32_t depth);
  ~sim_engine() override;

  result<void> fits(const request& r) const override;
  result<void> submit(request& r) override;
  void stop(request& r, uint32_t choice) override;
  void cancel(request& r) override;
  engine_numbers numbers() const override;
  const engine_config& config() const override { return core_->config; }
  const grid& ranks() const override;
  bytes_view step_bytes() const override { return core_->loop.buffers().bytes(); }
  result<void> health() const override { return core_->loop.board.health(); }

  sim_core& core() { return *core_; }

 private:
  explicit sim_engine(std::shared_ptr<sim_core> core) : core_(std::move(core)) {}
  std::shared_ptr<sim_core> core_;
  uint64_t next_id_ = 1;
};

}  // namespace lethe::sim
