#include "parallel/device_rank.hpp"

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
  device_rank(loaded_device loaded, std::unique_ptr<nccl_world> world)
      : claim_(std::move(loaded.claim)),
        on_(std::move(loaded.on)),
        weights_(std::move(loaded.weights)),
        world_(std::move(world)) {}
  ~device_rank() override {
    (void)on_->use();
    shard_.reset();
    world_.reset();
  }

  result<void> start(const cuda_row& row, const shard_config& config) {
    auto made = device_shard::make(*on_, row, std::move(weights_), {.shard = config}, world_.get());
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
  std::unique_ptr<device_weights> weights_;  // until the shard has them
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
                           .pins = library->pins,
                           .fate = groups.fate,
                           .stuck = c.stuck},
                          library->functions, std::move(groups.ends));
}

result<std::unique_ptr<step_rank>> make_one(devices& here, loaded_device on,
                                            const device_rank_config& c, const shard_config& config,
                                            rank_groups& groups) {
  auto world = world_of(here, c, groups);
  if (!world) return world.why();
  auto rank = std::make_unique<device_rank>(std::move(on), *std::move(world));
  if (auto started = rank->start(here.row(c.how), config); !started) return started.why();
  return std::unique_ptr<step_rank>(std::move(rank));
}

}  // namespace

result<loaded_device> load_device(devices& here, uint32_t number,
                                  std::chrono::milliseconds patience, const weight_source& from,
                                  const shard_part& part, const upload_options& how) {
  auto facts = facts_of(here, number);
  if (!facts) return facts.why();
  auto claim = device_claim::take(facts->id, patience);
  if (!claim) return fail("cuda:{}: {}", number, claim.why().text);
  auto on = here.open(number);
  if (!on) return on.why();
  auto weights = device_weights::load(**on, from, part, how);
  if (!weights) return weights.why();
  return loaded_device{*std::move(claim), *std::move(on), *std::move(weights)};
}

rank_maker on_device(devices& here, loaded_device on, device_rank_config config) {
  auto held = std::make_shared<loaded_device>(std::move(on));  // a maker can be copied
  return [&here, held, config = std::move(config)](const model_weights&, const shard_config& own,
                                                   rank_groups& groups) {
    return make_one(here, std::move(*held), config, own, groups);
  };
}

}  // namespace lethe
