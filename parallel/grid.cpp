#include "parallel/grid.hpp"

#include <sched.h>

#include <deque>
#include <system_error>
#include <thread>

#include "parallel/local_communicator.hpp"
#include "parallel/step_stack.hpp"
#include "parallel/word.hpp"
#include "runtime/base/first_error.hpp"

namespace lethe {
namespace {

/// Cores this process may run on.
uint32_t cores_here() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return uint32_t(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

shard_config rank_config(const grid_config& c, const shard_part& part, bool spin) {
  return {.part = part,
          .row = c.row,
          .threads = c.threads,
          .spin = spin,
          .kv = c.kv,
          .page_tokens = c.page_tokens,
          .pages = c.pages,
          .step_tokens = c.step_tokens,
          .logit_rows = c.logit_rows,
          .timed = c.timed,
          .spans_bytes = c.spans_bytes};
}

struct grid::parts {
  struct step {
    const step_plan* plan = nullptr;
    step_data data;
    std::atomic<uint32_t> ranks_done = 0;
  };

  explicit parts(const grid_config& c)
      : config(c),
        spin(c.ranks.tensor * c.ranks.pipeline * c.threads <= cores_here()),
        ring(c.ranks.pipeline) {}

  result<void> make_ranks(const model_weights& weights);
  result<void> start_threads();
  void serve(uint32_t rank);
  bool compute_lent();
  uint64_t steps_handed() const { return steps_waited - steps_lent; }
  void fail_with(error why);
  void abort();
  void stop();

  const grid_config config;
  const bool spin;
  std::vector<std::vector<std::unique_ptr<communicator>>> tensors;  // by stage
  std::vector<std::unique_ptr<communicator>> world;
  std::vector<std::unique_ptr<shard>> shards;
  std::vector<std::thread> threads;

  std::vector<step> ring;
  word submitted, finished;
  uint64_t steps_submitted = 0, steps_waited = 0;  // by the driver
  uint64_t steps_lent = 0;                         // of these, computed on its thread
  bool lent = false;                               // the step in flight will be
  first_error why;
};

result<std::unique_ptr<grid>> grid::start(const model_weights& weights, const grid_config& config) {
  if (auto fits = check_cut(weights.shape, config.ranks); !fits) return fits.why();
  auto p = std::make_unique<parts>(config);
  if (auto made = p->make_ranks(weights); !made) return made.why();
  std::unique_ptr<grid> g(new grid(std::move(p)));
  if (auto started = g->parts_->start_threads(); !started) return started.why();
  return g;
}

result<void> grid::parts::make_ranks(const model_weights& weights) {
  const cut& c = config.ranks;
  world = make_local_group(c.tensor * c.pipeline, spin);
  for (uint32_t stage = 0; stage < c.pipeline; ++stage) {
    tensors.push_back(make_local_group(c.tensor, spin));
    for (uint32_t rank = 0; rank < c.tensor; ++rank) {
      shard_config mine = rank_config(config, part_for(weights.shape, c, stage, rank), spin);
      auto made = shard::make(weights, mine, *tensors[stage][rank], *world[shards.size()]);
      if (!made) return made.why();
      shards.push_back(*std::move(made));
    }
    auto of_stage = std::span(shards).last(c.tensor);
    for (auto& one : of_stage)
      for (auto& other : of_stage)
        if (one != other) one->help(*other);
  }
  return {};
}

result<void> grid::parts::start_threads() {
  try {
    for (uint32_t r = 0; r < shards.size(); ++r) threads.emplace_back([this, r] { serve(r); });
  } catch (const std::system_error& e) {
    return fail("grid: cannot start {} rank threads: {}; use fewer, or raise ulimit -u",
                shards.size(), e.what());
  }
  return {};
}

/// One rank: takes the steps in order. The last rank to be done with one says so.
void grid::parts::serve(uint32_t rank) {
  clean_stack of_steps(step_stack_bytes);
  for (uint64_t next = 0; submitted.wait_past(word::nth(next), spin); ++next) {
    step& s = ring[next % ring.size()];
    if (auto done = shards[rank]->execute(*s.plan, s.data); !done) return fail_with(done.why());
    if (s.ranks_done.fetch_add(1) + 1 == shards.size()) finished.advance();
  }
}

/// The step in flight, on the driver's thread: two threads that wake each other take longer for
/// that than a small model's step leaves room for. False: it failed, or the grid was aborted.
bool grid::parts::compute_lent() {
  lent = false;
  ++steps_lent;
  if (submitted.aborted()) return false;
  step& s = ring[0];
  if (auto done = shards[0]->execute(*s.plan, s.data); !done) return fail_with(done.why()), false;
  return !submitted.aborted();
}

/// The first to fail names the reason; the others only notice that their group is gone.
void grid::parts::fail_with(error reason) {
  why.set(std::move(reason));
  abort();
}

void grid::parts::abort() {
  submitted.abort();
  finished.abort();
  for (auto& group : tensors) group[0]->abort();
  world[0]->abort();
}

/// Afterwards no rank reads plans, data, or another rank's memory.
void grid::parts::stop() {
  abort();
  for (std::thread& t : threads) t.join();
  threads.clear();
}

grid::grid(std::unique_ptr<parts> p) : parts_(std::move(p)) {}

grid::~grid() { parts_->stop(); }

uint32_t grid::depth() const { return uint32_t(parts_->ring.size()); }

void grid::submit(const step_plan& plan, const step_data& data) {
  parts& p = *parts_;
  check(p.steps_submitted - p.steps_waited < p.ring.size());
  parts::step& s = p.ring[p.steps_submitted++ % p.ring.size()];
  s.plan = &plan;
  s.data = data;
  s.ranks_done.store(0);
  p.lent = data.caller_waits && p.shards.size() == 1;
  if (!p.lent) p.submitted.advance();
}

result<void> grid::wait_oldest() {
  parts& p = *parts_;
  check(p.steps_waited != p.steps_submitted);
  if (p.lent ? p.compute_lent() : p.finished.wait_past(word::nth(p.steps_handed()), p.spin)) {
    ++p.steps_waited;
    return {};
  }
  p.stop();
  wipe_stack(step_stack_bytes);  // of steps that were lent
  p.why.set(fail("grid: aborted"));
  return p.why.get();
}

uint32_t grid::idle() const { return parts_->shards[0]->idle(); }

void grid::run_idle(const work& f) {
  check(parts_->steps_waited == parts_->steps_submitted);
  parts_->shards[0]->run_idle(f);
}

void grid::abort() { parts_->fail_with(fail("grid: aborted")); }

uint32_t grid::ranks() const { return uint32_t(parts_->shards.size()); }
const shard& grid::rank(uint32_t i) const {
  check(i < parts_->shards.size());
  return *parts_->shards[i];
}

}  // namespace lethe
