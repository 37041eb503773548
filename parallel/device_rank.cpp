#include "parallel/device_rank.hpp"

#include "parallel/device_claim.hpp"
#include "parallel/device_shard.hpp"
#include "parallel/nccl_world.hpp"
#include "parallel/team.hpp"
#include "runtime/base/wipe_stack.hpp"

namespace lethe {
namespace {

// Of the rank that leads, for what the host does between steps; they sleep while devices compute.
constexpr uint32_t crew_max = 8;
constexpr size_t stack_bytes = size_t{64} << 10;

class device_rank final : public step_rank {
 public:
  device_rank(device_claim claim, std::unique_ptr<accelerator> on,
              std::unique_ptr<nccl_world> world)
      : claim_(std::move(claim)), on_(std::move(on)), world_(std::move(world)) {}
  ~device_rank() override {
    (void)on_->use();
    shard_.reset();
    world_.reset();
  }

  result<void> start(devices& here, const model_weights& weights, const shard_config& config) {
    auto made = device_shard::make(*on_, here.row(), weights, {.shard = config}, world_.get());
    if (!made) return made.why();
    shard_ = *std::move(made);
    const bool leads = config.part.first() && config.part.tensor_rank == 0;
    const uint32_t cores = leads ? std::thread::hardware_concurrency() : 1;
    auto crew = team::start(std::clamp(cores, 1u, crew_max), false);
    if (!crew) return crew.why();
    crew_ = *std::move(crew);
    return {};
  }
  /// On whichever thread: a device is a thread's choice.
  result<void> execute(const step_plan& plan, const step_data& data) override {
    if (device_error e = on_->use()) return fail("shard: the device is gone: CUDA error {}", e);
    if (plan.wipe_scratch) crew_->run([](uint32_t) { wipe_stack(stack_bytes); });
    return shard_->execute(plan, data);
  }
  bool draws() const override { return true; }
  uint32_t idle() const override { return crew_->size(); }
  void run_idle(const work& f) override {
    crew_->run([&f](uint32_t thread) { f(thread); });
  }
  void abort() override {
    if (world_) world_->abort();
  }

 private:
  const device_claim claim_;
  const std::unique_ptr<accelerator> on_;
  std::unique_ptr<nccl_world> world_;
  std::unique_ptr<device_shard> shard_;
  std::unique_ptr<team> crew_;
};

result<device_facts> facts_of(devices& here, uint32_t number) {
  auto all = here.all();
  if (!all) return all.why();
  if (number < all->size()) return (*all)[number];
  return fail("cuda:{}: this host has {}; lethe devices lists them", number,
              all->size() == 1 ? "only cuda:0" : fmt::format("{} devices", all->size()));
}

/// What ranks of several devices talk through; none for one alone.
result<std::unique_ptr<nccl_world>> world_of(devices& here, const device_rank_config& c,
                                             rank_groups& groups) {
  if (c.ranks.tensor * c.ranks.pipeline == 1) return std::unique_ptr<nccl_world>();
  auto library = here.nccl();
  if (!library) return library.why();
  return nccl_world::join({.rank = groups.rank(),
                           .ranks = c.ranks,
                           .forming = c.forming,
                           .timeout = c.timeout,
                           .fate = groups.fate,
                           .stuck = c.stuck},
                          *library, std::move(groups.ends));
}

result<std::unique_ptr<step_rank>> make_one(devices& here, const device_rank_config& c,
                                            const model_weights& weights,
                                            const shard_config& config, rank_groups& groups) {
  auto facts = facts_of(here, c.number);
  if (!facts) return facts.why();
  auto claim = device_claim::take(facts->id, c.patience);
  if (!claim) return fail("cuda:{}: {}", c.number, claim.why().text);
  auto on = here.open(c.number);
  if (!on) return on.why();
  auto world = world_of(here, c, groups);
  if (!world) return world.why();
  auto rank = std::make_unique<device_rank>(*std::move(claim), *std::move(on), *std::move(world));
  if (auto started = rank->start(here, weights, config); !started) return started.why();
  return std::unique_ptr<step_rank>(std::move(rank));
}

}  // namespace

rank_maker on_device(devices& here, device_rank_config config) {
  return [&here, config = std::move(config)](const model_weights& weights, const shard_config& own,
                                             rank_groups& groups) {
    return make_one(here, config, weights, own, groups);
  };
}

}  // namespace lethe
