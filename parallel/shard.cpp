#include "parallel/shard.hpp"

#include <ctime>

#include "parallel/plan_check.hpp"
#include "parallel/stage.hpp"
#include "parallel/step_stack.hpp"

namespace lethe {

size_t kv_page_bytes(const model_shape& shape, const shard_part& part, kv_type kv,
                     uint32_t page_tokens) {
  return kv_layout{part.layers.size(), part.kv_heads.size(), shape.head_dim, page_tokens, kv}
      .page_bytes();
}

namespace {

uint64_t thread_cpu_ns() {
  timespec t{};
  check(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
  return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

}  // namespace

struct shard::parts {
  parts(const model_weights& weights, const shard_config& c, communicator& beside,
        communicator& between, kv_pool pages, lethe::scratch room, std::unique_ptr<team> threads)
      : config(c),
        vocab(weights.shape.vocab),
        tensor(beside),
        world(between),
        pool(std::move(pages)),
        activations(std::move(room)),
        crew(std::move(threads)),
        layers(weights, config, beside, between, activations.get(), pool, *crew) {}

  result<void> clean(const step_plan& plan);
  void wipe(const step_plan& plan, uint32_t thread);

  const shard_config config;
  const uint32_t vocab;
  communicator &tensor, &world;
  kv_pool pool;
  lethe::scratch activations;
  std::unique_ptr<team> crew;
  stage layers;
};

result<std::unique_ptr<shard>> shard::make(const model_weights& weights, const shard_config& config,
                                           communicator& tensor, communicator& world) {
  check(config.row != nullptr && config.threads > 0 && config.page_tokens > 0);
  check(tensor.size() == config.part.tensor_size && tensor.rank() == config.part.tensor_rank);
  const shard_part& p = config.part;
  auto pool = kv_pool::make(
      {p.layers.size(), p.kv_heads.size(), weights.shape.head_dim, config.page_tokens, config.kv},
      config.pages);
  if (!pool) return pool.why();
  auto room = lethe::scratch::make(weights, config);
  if (!room) return room.why();
  auto crew = team::start(config.threads, config.spin);
  if (!crew) return crew.why();
  return std::unique_ptr<shard>(new shard(std::make_unique<parts>(
      weights, config, tensor, world, *std::move(pool), *std::move(room), *std::move(crew))));
}

shard::shard(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
shard::~shard() = default;

result<void> shard::execute(const step_plan& plan, const step_data& data) {
  parts& p = *parts_;
  if (auto fits = check_plan(plan, data, p.config, p.vocab); !fits) return fits;
  if (!plan.draws.empty()) return fail("step {}: ranks on cores draw no tokens", plan.id);
  if (auto cleaned = p.clean(plan); !cleaned) return cleaned;
  if (plan.tokens == 0) return {};
  p.activations.touch(plan);
  p.layers.prepare(plan, data);
  uint64_t before = p.config.timed ? thread_cpu_ns() : 0;
  p.crew->run([&p](uint32_t thread) { p.layers.run(thread); });
  if (p.config.timed) p.layers.times().lead_cpu += thread_cpu_ns() - before;
  ++p.layers.times().steps;
  return p.layers.outcome();
}

void shard::help(shard& other) { parts_->layers.help(other.parts_->layers); }

uint32_t shard::idle() const { return parts_->crew->size(); }
void shard::run_idle(const work& f) {
  parts_->crew->run([&f](uint32_t thread) { f(thread); });
}

/// Wipes, then copies; afterwards pages that the step writes to are known to the pool.
result<void> shard::parts::clean(const step_plan& plan) {
  layers.watch().start();
  // The next stage may still be reading what the last step sent.
  if (plan.wipe_scratch)
    if (auto sent = world.flush(); !sent) return sent;
  if (!plan.wipes.empty() || plan.wipe_scratch)
    crew->run([this, &plan](uint32_t thread) { wipe(plan, thread); });
  if (plan.wipe_scratch) {
    activations.wiped();
    tensor.wipe();
    world.wipe();
  }
  for (const page_copy& c : plan.copies) {
    pool.touch(c.to);
    pool.copy(c);
  }
  for (const plan_entry& e : plan.entries)
    for (uint32_t at = e.position / config.page_tokens;
         at <= (e.position + e.tokens - 1) / config.page_tokens; ++at)
      pool.touch(plan.pages[e.first_page + at]);
  layers.watch().lap(layers.times().wipe);
  return {};
}

void shard::parts::wipe(const step_plan& plan, uint32_t thread) {
  range mine = part_of(uint32_t(plan.wipes.size()), thread, crew->size());
  for (uint32_t i = mine.begin; i < mine.end; ++i) pool.wipe(plan.wipes[i]);
  if (plan.wipe_scratch) activations.wipe(thread, crew->size());
  wipe_stack(step_stack_bytes);  // what a request's last step left there goes with its pages
}

std::vector<bytes_view> shard::page(uint32_t id) const {
  const kv_pool& pool = parts_->pool;
  check(id < pool.pages());
  std::vector<bytes_view> pieces;
  for (uint32_t head = 0; head < pool.layout().heads(); ++head)
    pieces.push_back(pool.piece(head, id));
  return pieces;
}
bytes_view shard::scratch() const { return parts_->activations.view(); }
size_t shard::page_bytes() const { return parts_->pool.layout().page_bytes(); }
const step_times& shard::times() const { return parts_->layers.times(); }

}  // namespace lethe
