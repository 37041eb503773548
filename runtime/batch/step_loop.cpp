#include "runtime/batch/step_loop.hpp"

#include <algorithm>
#include <chrono>

namespace lethe {

namespace {

// Telling one wakes a reader, which takes 3 us, or three times that where cores are short; handing
// a step to another thread and being woken by it about 50, however many there are to tell.
constexpr size_t told_beside = 4;

/// What the ranks drew from a row; null if they left that.
const uint32_t* drawn_at(const step_slot& slot, uint32_t row) {
  const auto& all = slot.plan.draws;
  auto at = std::ranges::lower_bound(all, row, {}, &row_draw::row);
  return at != all.end() && at->row == row ? slot.drawn + (at - all.begin()) : nullptr;
}

}  // namespace

uint64_t steady_ns() {
  auto since = std::chrono::steady_clock::now().time_since_epoch();
  return uint64_t(std::chrono::nanoseconds(since).count());
}

request_ask ask_of(const request& r, uint64_t id) {
  return {.request = id,
          .prompt_tokens = uint32_t(r.prompt().size()),
          .max_tokens = r.max_tokens(),
          .choices = r.choices(),
          .prompt_logits = r.wants_prompt_logprobs()};
}

step_loop::turned step_loop::turn() {
  read_inbox();
  for (uint64_t id : take_gone(planner_)) forget(id);
  while (!dead_ && launch()) {
  }
  tell();
  if (!flights_.empty()) {
    prepare_masks();
    settle();
    return turned::settled;
  }
  return stopping_ && requests_.empty() ? turned::over : turned::idle;
}

void step_loop::run() {
  show();
  while (true) {
    uint32_t seen = box.arrived();
    turned did = turn();
    if (did == turned::over) return;
    if (did == turned::idle) box.wait(seen);
  }
}

void step_loop::read_inbox() {
  for (const auto& l : box.take()) {
    if (l.kind == letter::what::submit) {
      admit(l);
    } else if (l.kind == letter::what::shutdown) {
      stopping_ = true;
      for (auto& [id, r] : requests_) cancel_all(*r, finish_reason::cancelled);
    } else if (auto found = requests_.find(l.id); found == requests_.end()) {
      continue;  // it ended by itself meanwhile
    } else if (l.kind == letter::what::stop) {
      stop(*found->second, l.choice);
    } else {
      cancel_all(*found->second, finish_reason::cancelled);
    }
  }
}

void step_loop::admit(const letter& l) {
  request& r = *l.from;
  r.times_.asked_ns = l.at_ns;
  requests_.emplace(l.id, &r);
  if (dead_ || stopping_) {
    // The planner never hears of it, and no page or scratch holds anything of it.
    mark_ended(r, finish_reason::failed);
    return forget(l.id);
  }
  auto ask = ask_of(r, l.id);
  if (planner_.config.kept_pages > 0)
    ask.prefix_keys = keys_of(planner_.kept, r.prompt(), planner_.config.page_tokens);
  // submit() let in only what fits, as many as the queue holds.
  auto queued = enqueue(planner_, ask);
  check(bool(queued));
}

void step_loop::mark_ended(request& r, finish_reason why) {
  for (uint32_t i = 0; i < r.choices_; ++i) {
    auto& reason = r.body_->choices[i].reason;
    if (reason.load() == finish_reason::none) reason.store(why, std::memory_order_release);
  }
}

void step_loop::cancel_all(request& r, finish_reason why) {
  mark_ended(r, why);
  cancel(planner_, r.id_);
  tell_later(r);
}

bool step_loop::launch() {
  auto plan = plan_step(planner_);
  if (!plan) return false;
  if (plan->wipe_scratch) buffers_.wipe_ended();
  step_slot& slot = buffers_.take();
  slot.plan = std::move(*plan);
  uint64_t at = slot.submitted_ns = now();
  for (const auto& e : slot.plan.entries) {
    const sequence& s = sequence_of(planner_, e);
    request& r = *requests_.at(s.request);
    if (r.times_.begun_ns == 0) r.times_.begun_ns = at;
    for (uint32_t i = 0; i < e.tokens; ++i)
      slot.token_ids[e.first_token + i] = r.token_at(s.choice, e.position + i);
  }
  if (ranks_->draws()) leave_draws(slot.plan);
  ranks_->submit(slot.plan, {.token_ids = slot.token_ids,
                             .logits = slot.logits,
                             .drawn = slot.drawn,
                             .caller_waits = !works_beside(slot.plan)});
  flights_.push_back(slot.index);
  return true;
}

/// The ranks draw where it takes numbers alone, and once: the choices of a request share the last
/// row of its prompt.
void step_loop::leave_draws(step_plan& plan) const {
  for (const plan_entry& e : plan.entries) {
    const sequence& s = sequence_of(planner_, e);
    const request& r = *requests_.at(s.request);
    size_t end = size_t{e.position} + e.tokens, prompt = r.prompt().size();
    bool once = r.choices_ == 1 ? end >= prompt : end > prompt;
    bool plain = takes_numbers_alone(r.body_->how) && !r.body_->form && !is_early(r, s.choice);
    if (!once || !plain) continue;
    uint32_t made = r.body_->choices[s.choice].published.load(std::memory_order_relaxed);
    uint32_t rows = e.position < prompt ? 1 : e.logit_rows;
    for (uint32_t i = 0; i < rows; ++i) {
      row_draw how = numbers_of(r.body_->how, s.choice, made + i);
      how.row = e.first_logit_row + e.logit_rows - rows + i;
      plan.draws.push_back(how);
    }
  }
}

/// While the ranks compute this step.
bool step_loop::works_beside(const step_plan& plan) const {
  if (changed_.size() > told_beside) return true;
  return std::ranges::any_of(plan.entries, [this](const plan_entry& e) {
    return requests_.at(sequence_of(planner_, e).request)->body_->form != nullptr;
  });
}

bool step_loop::is_early(const request& of, uint32_t choice) {
  return of.body_->choices[choice].published.load(std::memory_order_relaxed) < of.min_tokens_;
}

const uint64_t* step_loop::mask_of(request& of, uint32_t choice) {
  auto& form = *of.body_->form;
  auto allowed = form.allowed(choice);
  if (is_early(of, choice)) {
    for (size_t i = 0; i < std::min(allowed.size(), of.body_->before_min.size()); ++i)
      allowed[i] &= of.body_->before_min[i];
  } else if (form.may_end(choice) && !allowed.empty()) {
    for (uint32_t id : of.body_->stop_ids)
      if (id < form.vocab()) allowed[id / 64] |= uint64_t{1} << id % 64;
  }
  bool any = std::ranges::any_of(allowed, [](uint64_t word) { return word != 0; });
  return any ? allowed.data() : nullptr;
}

/// While the ranks compute the oldest step: the masks for its tokens. What they depend on was
/// sampled before the step was planned.
void step_loop::prepare_masks() {
  if (dead_) return;
  for (const auto& e : buffers_.slot(flights_.front()).plan.entries) {
    const sequence& s = sequence_of(planner_, e);
    request& r = *requests_.at(s.request);
    bool lives = r.body_->choices[s.choice].reason.load() == finish_reason::none;
    if (r.body_->form && lives) mask_of(r, s.choice);
  }
}

void step_loop::settle() {
  step_slot& slot = buffers_.slot(flights_.front());
  flights_.pop_front();
  if (auto done = ranks_->wait_oldest(); !done) return die(done.why());
  uint64_t at = now();
  if (watch) watch->stepped(slot.plan, slot.submitted_ns, at);
  learn_pace(planner_, slot.plan, at - slot.submitted_ns);
  for (const auto& r : complete(planner_, slot.plan)) {
    request& of = *requests_.at(r.request);
    for (uint32_t i = 0; i < r.logit_rows; ++i) {
      uint32_t index = r.first_logit_row + i;
      std::span<float> row(slot.logits + size_t{index} * vocab_, vocab_);
      if (r.choice == 0) take_prompt_row(of, r.position + i, row);
      if (uint32_t ahead = i + r.samples - r.logit_rows; ahead < r.samples)
        ask_for_token(of, r.choice, ahead, row, drawn_at(slot, index));
    }
  }
  draw_all();
  for (std::span<const draw> left = draws_; !left.empty();) {
    auto next = std::ranges::find(left.subspan(1), 0u, &draw::ahead);
    auto of_choice = left.first(size_t(next - left.begin()));
    take_tokens(of_choice, at);
    left = left.subspan(of_choice.size());
  }
  wipe(draws_.data(), draws_.size() * sizeof(draw));
  draws_.clear();
  count(slot.plan);
  buffers_.give_back(slot);
}

/// The row of position p tells how likely the prompt's token p + 1 was.
void step_loop::take_prompt_row(request& of, uint32_t position, std::span<const float> row) {
  uint32_t next = position + 1;
  auto& b = *of.body_;
  if (!of.wants_prompt_logprobs_ || next >= b.prompt.size()) return;
  logprobs of_row(row, buffers_.scratch(0).maxima());
  b.prompt_logprobs[next] = of_row.of(b.prompt[next]);
  uint32_t n = b.how.logprobs;
  if (n > 0) of_row.top({b.prompt_top.data() + size_t{next} * n, n});
}

void step_loop::mark_token(request& of, choice_state& c, uint64_t at_ns) {
  auto& t = of.times_;
  if (t.first_ns == 0) t.first_ns = at_ns;
  if (c.last_ns != 0) t.between_tokens.add((at_ns - c.last_ns) / 1000);
  t.last_ns = c.last_ns = at_ns;
}

void step_loop::ask_for_token(request& of, uint32_t choice, uint32_t ahead,
                              std::span<const float> row, const uint32_t* came) {
  auto& b = *of.body_;
  const uint64_t* allowed = b.form                 ? mask_of(of, choice)
                            : is_early(of, choice) ? b.before_min.data()
                                                   : nullptr;
  if (b.form && !allowed)
    return end(of, choice, b.form->may_end(choice) ? finish_reason::stop : finish_reason::stuck);
  draws_.push_back({.of = &of,
                    .choice = choice,
                    .ahead = ahead,
                    .row = row,
                    .allowed = allowed,
                    .came = came != nullptr,
                    .drawn = {.id = came ? *came : 0}});
}

/// Each on its own: which thread draws which, and when, makes no difference.
void step_loop::draw_all() {
  std::atomic<size_t> next = 0;
  auto some = [this, &next](uint32_t thread) {
    if (thread >= buffers_.drawers()) return;
    for (size_t i; (i = next.fetch_add(1)) < draws_.size();)
      draw_one(draws_[i], buffers_.scratch(thread));
  };
  auto left = std::ranges::count(draws_, false, &draw::came);
  if (left > 1 && flights_.empty())
    ranks_->run_idle(some);
  else
    some(0);
}

void step_loop::draw_one(draw& d, sampler_scratch& scratch) {
  if (d.came) return;
  const sampling& how = d.of->body_->how;
  choice_state& c = d.state();
  uint32_t made = c.published.load(std::memory_order_relaxed) + d.ahead;
  std::span top(c.top.data() + size_t{made} * how.logprobs, how.logprobs);
  d.drawn = sample(d.row, how, c.counts, d.choice, made, scratch, top, d.allowed);
}

choice_state& step_loop::draw::state() const { return of->body_->choices[choice]; }

bool step_loop::draw::stops() const {
  const auto& ids = of->body_->stop_ids;
  return std::find(ids.begin(), ids.end(), drawn.id) != ids.end();
}

bool step_loop::take_token(const draw& d, uint64_t at_ns) {
  request& of = *d.of;
  auto& b = *of.body_;
  choice_state& c = d.state();
  auto ended = [&](finish_reason why) { return end(of, d.choice, why), false; };
  if (d.stops()) return ended(finish_reason::stop);
  bool fits = !b.form || b.form->accept_token(d.choice, d.drawn.id);
  if (!fits) return ended(finish_reason::stuck);
  uint32_t made = c.published.load(std::memory_order_relaxed);
  c.ids[made] = d.drawn.id;
  if (b.how.want_logprob) c.logprobs[made] = d.drawn.logprob;
  if (needs_counts(b.how)) c.counts.add_output(d.drawn.id);
  mark_token(of, c, at_ns);
  c.published.store(made + 1, std::memory_order_release);
  if (b.form && b.form->must_end(d.choice)) return ended(finish_reason::stop);
  if (made + 1 == of.max_tokens_) return ended(finish_reason::length);
  tell_later(of);
  return true;
}

/// A stop text ends in a token, so a choice that has none yet can't have been meant.
void step_loop::stop(request& of, uint32_t choice) {
  if (choice >= of.choices_) return;
  if (of.body_->choices[choice].published.load(std::memory_order_relaxed) == 0) return;
  end(of, choice, finish_reason::stop);
}

void step_loop::end(request& of, uint32_t choice, finish_reason why) {
  auto& reason = of.body_->choices[choice].reason;
  if (reason.load() != finish_reason::none) return;
  reason.store(why, std::memory_order_release);
  finish(planner_, of.id_, choice);
  tell_later(of);
}

/// Whoever is told wakes up, and would do so on the time of all streams: they are told while the
/// next step computes.
void step_loop::tell_later(request& of) {
  if (!std::exchange(of.telling_, true)) changed_.push_back(&of);
}

void step_loop::tell() {
  for (request* r : changed_) {
    r->telling_ = false;
    r->publish(1);
  }
  changed_.clear();
}

void step_loop::forget(uint64_t id) {
  auto found = requests_.find(id);
  request& r = *found->second;
  requests_.erase(found);
  if (r.telling_) std::erase(changed_, &r);
  outstanding.fetch_sub(1);
  r.publish(request::gone_bit);
}

/// The ranks are lost: their destruction wipes pages and scratch, then every request is gone.
void step_loop::die(const error& why) {
  ranks_.reset();
  buffers_.wipe_all();
  flights_.clear();
  dead_ = true;
  board.set_dead(why);
  while (!requests_.empty()) {
    mark_ended(*requests_.begin()->second, finish_reason::failed);
    forget(requests_.begin()->first);
  }
}

void step_loop::count(const step_plan& plan) {
  auto& n = numbers_;
  n.steps += 1;
  n.pages_wiped += plan.wipes.size();
  for (const auto& e : plan.entries) {
    const request& r = *requests_.at(sequence_of(planner_, e).request);
    if (e.position < r.prompt().size())
      n.tokens_prefilled += e.tokens;
    else
      ++n.tokens_decoded;  // and guesses that were right
  }
  show();
}

void step_loop::show() {
  auto load = load_of(planner_);
  auto& n = numbers_;
  n.pages = load.pages_total;
  n.pages_reserved = load.pages_reserved;
  n.pages_written = load.pages_holding;
  n.running = load.running;
  n.queued = load.queued;
  if (load.pages_reserved >= n.pages_reserved_peak) {
    n.pages_reserved_peak = load.pages_reserved;
    n.pages_written_at_peak = load.pages_holding;
  }
  board.set(n);
}

}  // namespace lethe
