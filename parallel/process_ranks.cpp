#include "parallel/process_ranks.hpp"

#include <system_error>
#include <thread>

#include "parallel/local_communicator.hpp"
#include "parallel/mesh.hpp"
#include "parallel/rank_step.hpp"
#include "parallel/step_stack.hpp"
#include "parallel/word.hpp"
#include "runtime/base/first_error.hpp"

namespace lethe {

result<rank_groups> join_rank_groups(const gloo_config& base, const cut& ranks, rank_store& store,
                                     rank_kind kind) {
  if (base.size != ranks.tensor * ranks.pipeline || base.rank >= base.size)
    return fail("ranks: rank {} of {} does not fit tensor {} x pipeline {}", base.rank, base.size,
                ranks.tensor, ranks.pipeline);
  auto fate = std::make_shared<group_fate>();
  auto join = [&](std::string name, uint32_t rank, uint32_t size,
                  std::chrono::milliseconds timeout) -> result<std::unique_ptr<communicator>> {
    if (size == 1) return std::move(make_local_group(1, false)[0]);
    auto end = gloo_communicator::join({.epoch = base.epoch,
                                        .group = base.group + "/" + name,
                                        .rank = rank,
                                        .size = size,
                                        .secret = key_bytes(base.secret.view()),
                                        .address = base.address,
                                        .protected_link = base.protected_link,
                                        .timeout = timeout,
                                        .forming = base.forming,
                                        .spin = base.spin,
                                        .first_rank = base.rank - rank,
                                        .fate = fate},
                                       store);
    if (!end) return end.why();
    return std::unique_ptr<communicator>(*std::move(end));
  };
  uint32_t stage = base.rank / ranks.tensor, tensor_rank = base.rank % ranks.tensor;
  auto plans = join("plans", base.rank, base.size,
                    base.rank == 0 ? base.timeout : std::chrono::milliseconds(0));
  if (!plans) return plans.why();
  auto results = join("results", base.rank, base.size, base.timeout);
  if (!results) return results.why();
  rank_groups made{.plans = *std::move(plans), .results = *std::move(results), .fate = fate};
  // Without a pipeline nobody speaks across stages.
  const bool alone = kind == rank_kind::cores && ranks.pipeline == 1;
  auto all = join(kind == rank_kind::cores ? "world" : "ends", alone ? 0 : base.rank,
                  alone ? 1 : base.size, base.timeout);
  if (!all) return all.why();
  if (kind == rank_kind::device) {
    made.ends = *std::move(all);
    return made;
  }
  made.world = *std::move(all);
  auto tensor = join(fmt::format("tensor {}", stage), tensor_rank, ranks.tensor, base.timeout);
  if (!tensor) return tensor.why();
  made.tensor = *std::move(tensor);
  return made;
}

struct process_ranks::parts {
  struct step {
    const step_plan* plan = nullptr;
    step_data data;
  };

  parts(rank_groups g, const grid_config& c, plan_bytes b, bool spins)
      : groups(std::move(g)), config(c), spin(spins), plans(std::move(b)), ring(c.ranks.pipeline) {}

  result<void> compute(const step& s);
  result<void> collect(const step& s);
  void serve();
  bool own_part_done();
  void fail_with(error why);
  void abort();
  void stop();
  void end();

  rank_groups groups;
  const grid_config config;
  const bool spin;
  uint32_t vocab = 0;
  plan_bytes plans;
  std::unique_ptr<step_rank> own;
  std::thread thread;
  std::vector<step> ring;
  word submitted, finished;
  uint64_t steps_submitted = 0, steps_waited = 0, steps_lent = 0;  // by the driver
  bool lent = false;
  first_error why;
};

result<std::unique_ptr<process_ranks>> process_ranks::start(const model_weights& weights,
                                                            const grid_config& config,
                                                            rank_groups groups, bool spin,
                                                            const rank_maker& make) {
  check(groups.rank() == 0);
  auto plans = plan_bytes::make();
  if (!plans) return plans.why();
  if (auto same = agree(weights, config, *groups.plans); !same) return same.why();
  auto p = std::make_unique<parts>(std::move(groups), config, *std::move(plans), spin);
  auto own = make_rank(weights, config, p->groups, spin, make);
  if (!own) return own.why();
  p->own = *std::move(own);
  p->vocab = weights.shape.vocab;
  std::unique_ptr<process_ranks> made(new process_ranks(std::move(p)));
  try {
    made->parts_->thread = std::thread([at = made->parts_.get()] { at->serve(); });
  } catch (const std::system_error& e) {
    return fail("ranks: cannot start a thread: {}; raise ulimit -u", e.what());
  }
  return made;
}

process_ranks::process_ranks(std::unique_ptr<parts> p) : parts_(std::move(p)) {}

process_ranks::~process_ranks() { parts_->end(); }

uint32_t process_ranks::depth() const { return uint32_t(parts_->ring.size()); }

/// Its own rank, in its own thread: a later step may begin while the driver waits for an earlier
/// one to come out of the pipeline.
void process_ranks::parts::serve() {
  clean_stack of_steps(step_stack_bytes);
  for (uint64_t next = 0; submitted.wait_past(word::nth(next), spin); ++next) {
    if (auto done = compute(ring[next % ring.size()]); !done) return fail_with(done.why());
    finished.advance();
  }
}

/// Nothing of the step's tokens stays in the message.
result<void> process_ranks::parts::compute(const step& s) {
  if (auto written = plans.write(*s.plan, s.data.token_ids); !written) return written;
  auto said = share(*groups.plans, plans);
  plans.wipe();
  return said ? own->execute(*s.plan, s.data) : said;
}

void process_ranks::submit(const step_plan& plan, const step_data& data) {
  parts& p = *parts_;
  check(p.steps_submitted - p.steps_waited < p.ring.size());
  p.ring[p.steps_submitted++ % p.ring.size()] = {&plan, data};
  p.lent = data.caller_waits && p.ring.size() == 1;
  if (!p.lent) p.submitted.advance();
}

/// What the driver would only wait for, it may as well compute.
bool process_ranks::parts::own_part_done() {
  if (!lent) return finished.wait_past(word::nth(steps_waited - steps_lent), false);
  lent = false;
  ++steps_lent;
  if (submitted.aborted()) return false;
  auto done = compute(ring[0]);
  if (!done) fail_with(done.why());
  return bool(done);
}

/// What the other ranks made of it.
result<void> process_ranks::parts::collect(const step& s) {
  uint32_t carrier = logits_from(config.ranks);
  if (carrier == 0)
    return ends_unseen(*s.plan) ? hear_done(*groups.results, config.ranks) : result<void>();
  return hear_answer(*groups.results, *s.plan, s.data, vocab, carrier);
}

result<void> process_ranks::wait_oldest() {
  parts& p = *parts_;
  check(p.steps_waited != p.steps_submitted);
  if (p.own_part_done()) {
    auto all = p.collect(p.ring[p.steps_waited % p.ring.size()]);
    if (all) {
      ++p.steps_waited;
      return {};
    }
    p.fail_with(all.why());
  }
  p.stop();
  wipe_stack(step_stack_bytes);  // of steps that were lent
  p.why.set(fail("ranks: aborted"));
  return p.why.get();
}

bool process_ranks::draws() const { return parts_->own->draws(); }

uint32_t process_ranks::idle() const { return parts_->own->idle(); }

void process_ranks::run_idle(const work& f) {
  check(parts_->steps_waited == parts_->steps_submitted);
  parts_->own->run_idle(f);
}

/// The first to fail names the reason.
void process_ranks::parts::fail_with(error reason) {
  why.set(std::move(reason));
  abort();
}

void process_ranks::parts::abort() {
  submitted.abort();
  finished.abort();
  groups.abort();
  own->abort();
}

/// Afterwards nobody reads plans or data.
void process_ranks::parts::stop() {
  abort();
  if (thread.joinable()) thread.join();
}

/// The others are told, unless they stop because something failed.
void process_ranks::parts::end() {
  bool idle = steps_waited == steps_submitted && !submitted.aborted();
  submitted.abort();
  if (idle && thread.joinable()) thread.join();
  plans.write_end();
  if (!idle || !share(*groups.plans, plans)) stop();
}

void process_ranks::abort() { parts_->fail_with(fail("ranks: aborted")); }
}  // namespace lethe
