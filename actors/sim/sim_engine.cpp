#include "actors/sim/sim_engine.hpp"

#include <algorithm>

#include "actors/cluster/messages.hpp"
#include "actors/sim/page_check.hpp"

namespace lethe::sim {

next_token::next_token(const served_model& model, uint64_t stop_once_in)
    : stop_(model.stop_ids.front()), stop_once_in_(stop_once_in) {
  const auto& words = model.words;
  for (uint32_t id = 0; id < model.model.shape().vocab; ++id) {
    auto text = words.token_bytes(id);
    bool readable = !text.empty() && std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || c == ' ' || (c >= 'A' && c <= 'Z');
    });
    if (readable && !words.is_special(id)) plain_.push_back(id);
  }
  check(plain_.size() > 32);
}

uint32_t next_token::after(std::span<const uint32_t> history) const {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint32_t id : history) hash = (hash ^ id) * 0x100000001b3;
  hash ^= hash >> 29;
  bool stops = stop_once_in_ > 0 && hash % stop_once_in_ == 0;
  return stops ? stop_ : plain_[(hash >> 6) % plain_.size()];
}

sim_ranks::sim_ranks(ledger& facts, const planner_config& c, uint32_t vocab)
    : facts_(facts),
      page_tokens_(c.page_tokens),
      vocab_(vocab),
      next_(*facts.model, facts.stop_once_in),
      cells_(size_t{c.pages} * c.page_tokens, 0) {}

void sim_ranks::submit(const step_plan& plan, const step_data& data) {
  flights_.emplace_back(&plan, data);
}

result<void> sim_ranks::wait_oldest() {
  auto [plan, data] = flights_.front();
  flights_.pop_front();
  if (fail_next) return fail("a rank was lost");
  execute(*plan, data);
  return {};
}

uint32_t& sim_ranks::cell(const step_plan& plan, const plan_entry& e, uint32_t position) {
  check(position / page_tokens_ < e.page_count);
  uint32_t page = plan.pages.at(e.first_page + position / page_tokens_);
  return cells_.at(size_t{page} * page_tokens_ + position % page_tokens_);
}

/// In a shard's order: wipe, copy, compute.
void sim_ranks::execute(const step_plan& plan, const step_data& data) {
  auto rows = [this](uint32_t page) { return cells_.begin() + size_t{page} * page_tokens_; };
  for (uint32_t page : plan.wipes) std::fill_n(rows(page), page_tokens_, 0);
  for (const auto& c : plan.copies) std::copy_n(rows(c.from), c.tokens, rows(c.to));
  for (const auto& e : plan.entries)
    for (uint32_t i = 0; i < e.tokens; ++i) {
      uint32_t& at = cell(plan, e, e.position + i);
      if (at != 0) facts_.violated("a page has two owners, or was not wiped between them");
      at = data.token_ids[e.first_token + i] + 1;
    }
  std::vector<uint32_t> history;
  for (const auto& e : plan.entries) {
    history.clear();
    uint32_t last = e.position + e.tokens;
    for (uint32_t p = 0; p < last; ++p) {
      uint32_t stored = cell(plan, e, p);
      if (stored == 0) facts_.violated("a sequence reads a page that was wiped under it");
      history.push_back(stored - 1);
    }
    for (uint32_t row = 0; row < e.logit_rows; ++row) {
      float* logits = data.logits + size_t{e.first_logit_row + row} * vocab_;
      std::fill_n(logits, vocab_, 0.f);
      uint32_t known = last - e.logit_rows + row + 1;
      logits[next_.after(std::span(history).first(known))] = 10.f;
    }
  }
}

namespace {

caf::behavior step(caf::event_based_actor* self, std::weak_ptr<sim_core> of) {
  return {[self, of](tick) {
    auto core = of.lock();
    if (!core) return self->quit();
    core->turning = false;
    auto did = core->turn();
    if (did != step_loop::turned::settled || core->turning) return;
    core->turning = true;
    self->delayed_send(self, std::chrono::microseconds(core->step_us), tick::value);
  }};
}

}  // namespace

sim_core::sim_core(ledger& l, const engine_config& c, const planner_config& p, step_buffers buffers)
    : config(c),
      plan(p),
      facts(l),
      ranks(new sim_ranks(l, p, l.model->model.shape().vocab)),
      loop(*make_planner(p), std::unique_ptr<step_ranks>(ranks), std::move(buffers),
           l.model->model.shape().vocab) {
  facts.cores.insert(this);
}

sim_core::~sim_core() { facts.cores.erase(this); }

void sim_core::start(caf::actor_system& sys, std::shared_ptr<sim_core> self) {
  stepper = sys.spawn(step, std::weak_ptr<sim_core>(self));
  loop.now = [&sys] {
    return uint64_t(std::chrono::nanoseconds(sys.clock().now().time_since_epoch()).count());
  };
}

void sim_core::put(letter l) {
  loop.box.put(l);
  if (turning) return;
  turning = true;
  caf::anon_send(stepper, tick::value);
}

step_loop::turned sim_core::turn() {
  bool failing = ranks && ranks->fail_next;
  auto did = loop.turn();
  if (failing && !loop.board.health()) {
    dead = true;
    ranks = nullptr;
  }
  if (dead) return did;
  if (facts.planted == bug::page_freed_early && facts.chance.once_in(50)) {
    auto& pool = const_cast<planner_state&>(loop.planner()).pool;
    auto held = std::ranges::find(pool.pages, page_state::used, &page::state);
    if (held != pool.pages.end()) drop_page(pool, uint32_t(held - pool.pages.begin()));
  }
  if (auto wrong = check_pages_of(loop.planner()); !wrong.empty())
    facts.violated("engine {}: {}", slot, wrong);
  return did;
}

/// Cancels what is left and turns until everything is wiped.
void sim_core::finish() {
  loop.box.put({.kind = letter::what::shutdown});
  while (turn() != step_loop::turned::over) {
  }
}

std::unique_ptr<sim_engine> sim_engine::make(caf::actor_system& sys, ledger& facts,
                                             const engine_config& c, uint32_t pages,
                                             uint32_t depth) {
  planner_config plan{.pages = pages,
                      .page_tokens = c.page_size(),
                      .step_tokens = c.step_tokens,
                      .chunk_max = c.chunk_tokens,
                      .logit_rows = c.running,
                      .depth = depth,
                      .running_max = c.running,
                      .queue_max = c.requests_max(),
                      .context_max = c.context};
  auto buffers =
      step_buffers::make(depth, c.step_tokens, c.running, facts.model->model.shape().vocab);
  check(bool(buffers));
  auto core = std::make_shared<sim_core>(facts, c, plan, *std::move(buffers));
  core->start(sys, core);
  return std::unique_ptr<sim_engine>(new sim_engine(std::move(core)));
}

sim_engine::~sim_engine() {
  core_->finish();
  caf::anon_send_exit(core_->stepper, caf::exit_reason::user_shutdown);
}

engine_numbers sim_engine::numbers() const {
  auto n = core_->loop.board.numbers();
  auto planted = core_->facts.planted;
  if (planted == bug::load_unseen) n.queued = n.pages_reserved = 0;
  if (planted == bug::load_forever) n.queued += 1;
  return n;
}

result<void> sim_engine::fits(const request& r) const {
  return check_ask(core_->plan, ask_of(r, 0));
}

result<void> sim_engine::submit(request& r) {
  if (auto alive = health(); !alive) return alive.why();
  if (auto ok = fits(r); !ok) return ok.why();
  if (core_->loop.outstanding.fetch_add(1) >= core_->config.requests_max()) {
    core_->loop.outstanding.fetch_sub(1);
    return fail("{} requests wait or run already", core_->config.requests_max());
  }
  auto& facts = core_->facts;
  if (facts.planted == bug::lost_completion && facts.chance.once_in(8)) r.watch(nullptr);
  if (facts.planted == bug::arena_outlives_request && facts.chance.once_in(8)) {
    facts.keepsakes.push_back(*arena::make(4096));
    check(facts.keepsakes.back().take(r.prompt().size_bytes()) != nullptr);
  }
  r.set_id(next_id_++);
  core_->put({.kind = letter::what::submit, .id = r.id(), .from = &r, .at_ns = core_->loop.now()});
  return {};
}

void sim_engine::stop(request& r, uint32_t choice) {
  core_->put({.kind = letter::what::stop, .id = r.id(), .choice = choice});
}

void sim_engine::cancel(request& r) {
  core_->put({.kind = letter::what::cancel, .id = r.id()});
  // Whoever destroys a request waits for the engine, whose thread would turn meanwhile.
  while (core_->facts.unwinding && !r.gone()) core_->turn();
}

const grid& sim_engine::ranks() const {
  check(false);  // only the tests of real ranks look at them
  std::abort();
}

}  // namespace lethe::sim
