#include "runtime/batch/planner.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/check.hpp"

namespace lethe {
namespace {

uint32_t tokens_stored_max(const request_ask& ask) {
  return ask.prompt_tokens + ask.max_tokens - 1;
}

/// Pages of one choice that no other choice reads. Choices that never decode store nothing.
uint32_t own_pages(const request_ask& ask, uint32_t page_tokens, uint32_t choice) {
  if (choice > 0 && ask.max_tokens == 1) return 0;
  return pages_for(tokens_stored_max(ask), page_tokens) - ask.prompt_tokens / page_tokens;
}

void share_prompt_pages(planner_state& state, const sequence& first, sequence& other,
                        uint32_t shared) {
  for (uint32_t i = 0; i < shared; ++i) {
    share_page(state.pool, first.pages[i]);
    other.pages.push_back(first.pages[i]);
  }
}

/// Pages of the prompt that need not be computed: its last token always is.
uint32_t reused_pages(const planner_state& state, const request_ask& ask) {
  if (ask.prefix_keys.empty() || ask.prompt_logits) return 0;
  uint32_t most = (ask.prompt_tokens - 1) / state.config.page_tokens;
  return count_kept(state.kept, ask.prefix_keys, most);
}

/// Those of its prompt that are kept.
void reuse_pages(planner_state& state, const request_ask& ask, sequence& first) {
  uint32_t reused = reused_pages(state, ask);
  for (uint32_t i = 0; i < reused; ++i) {
    uint32_t page = state.kept.pages.at(ask.prefix_keys[i]);
    share_page(state.pool, page);
    first.pages.push_back(page);
  }
  first.position = reused * state.config.page_tokens;
}

void take_sequences(planner_state& state, planned_request& request) {
  const request_ask& ask = request.ask;
  uint32_t shared = ask.prompt_tokens / state.config.page_tokens;
  for (uint32_t choice = 0; choice < ask.choices; ++choice) {
    uint32_t index = state.free_sequences.back();
    state.free_sequences.pop_back();
    sequence& s = state.sequences[index];
    s = {.request = ask.request, .choice = choice, .end = tokens_stored_max(ask)};
    uint32_t own = own_pages(ask, state.config.page_tokens, choice);
    s.pages.reserve(shared + own);
    if (choice == 0)
      reuse_pages(state, ask, s);
    else
      share_prompt_pages(state, state.sequences[request.sequences[0]], s, shared);
    take_pages(state.pool, shared + own - uint32_t(s.pages.size()), s.pages);
    request.sequences.push_back(index);
  }
  request.living = ask.choices;
  state.running += ask.choices;
}

/// A request is admitted whole or not at all, and nobody overtakes the queue's head: a running
/// request never waits for memory, a waiting one only for those before it.
void admit(planner_state& state) {
  while (!state.queue.empty()) {
    planned_request& head = state.requests.at(state.queue.front());
    uint64_t pages = pages_reserved_for(head.ask, state.config.page_tokens);
    pages -= reused_pages(state, head.ask);
    if (pages > state.pool.free) return make_room(state.kept, state.pool, pages, state.wipes);
    if (head.ask.choices > state.free_sequences.size()) return;
    state.queue.pop_front();
    take_sequences(state, head);
    uint32_t first = head.sequences[0];
    state.sequences[first].phase = sequence_phase::prefilling;
    state.prefilling.push_back(first);
  }
}

void add_entry(planner_state& state, step_plan& plan, uint32_t index, uint32_t tokens,
               uint32_t logit_rows) {
  sequence& s = state.sequences[index];
  check(!s.in_flight);
  check(tokens > 0 && tokens <= s.end - s.position);
  uint32_t page_tokens = state.config.page_tokens;
  uint32_t page_count = pages_for(s.position + tokens, page_tokens);
  plan.entries.push_back({.sequence = index,
                          .position = s.position,
                          .tokens = tokens,
                          .first_token = plan.tokens,
                          .first_page = uint32_t(plan.pages.size()),
                          .page_count = page_count,
                          .logit_rows = logit_rows,
                          .first_logit_row = plan.logit_rows});
  plan.pages.insert(plan.pages.end(), s.pages.begin(), s.pages.begin() + page_count);
  for (uint32_t i = s.position / page_tokens; i < page_count; ++i)
    mark_written(state.pool, s.pages[i]);
  if (s.fork) plan.copies.push_back(*s.fork);
  plan.tokens += tokens;
  plan.logit_rows += logit_rows;
  s.in_flight = s.ran = true;
}

/// With several steps in flight, each takes its share of the decodes, so that none runs empty.
void add_decodes(planner_state& state, step_plan& plan) {
  const planner_config& c = state.config;
  uint32_t decoding = uint32_t(state.ready.size()) + state.decodes_in_flight;
  uint32_t share = decoding / c.depth + (decoding % c.depth != 0);
  uint32_t count = std::min({share, uint32_t(state.ready.size()), c.step_tokens, c.logit_rows});
  uint32_t rows = std::min({c.guess_rows, c.step_tokens, c.logit_rows});
  uint32_t guesses = rows > count ? rows - count : 0;
  size_t pages = 0;
  for (uint32_t i = 0; i < count; ++i)
    pages += state.sequences[state.ready[i]].position / c.page_tokens + 1;
  plan.entries.reserve(count);
  plan.pages.reserve(pages);
  for (uint32_t i = 0; i < count; ++i) {
    sequence& s = state.sequences[state.ready.front()];
    uint32_t tokens = 1 + std::min({std::exchange(s.guesses, 0), guesses, s.end - s.position - 1});
    add_entry(state, plan, state.ready.front(), tokens, tokens);
    guesses -= tokens - 1;
    state.ready.pop_front();
  }
  state.decodes_in_flight += count;
}

void add_prefills(planner_state& state, step_plan& plan) {
  const planner_config& c = state.config;
  const uint32_t end =
      std::min(c.step_tokens, plan.tokens + prompt_tokens_beside(state, plan.tokens));
  for (uint32_t index : state.prefilling) {
    if (plan.tokens == end) return;
    const sequence& s = state.sequences[index];
    if (s.in_flight) continue;
    const request_ask& ask = state.requests.at(s.request).ask;
    uint32_t rows_left = c.logit_rows - plan.logit_rows;
    uint32_t rest = ask.prompt_tokens - s.position;
    uint32_t tokens = std::min({rest, c.chunk_max, end - plan.tokens});
    if (ask.prompt_logits) tokens = std::min(tokens, rows_left);
    // The last token waits for a step that has a row for it; those before it need not.
    else if (tokens == rest && rows_left == 0)
      --tokens;
    if (tokens == 0) continue;
    uint32_t rows = ask.prompt_logits ? tokens : tokens == rest ? 1 : 0;
    add_entry(state, plan, index, tokens, rows);
  }
}

void drop_and_retire(planner_state& state, uint32_t page) {
  if (drop_page(state.pool, page)) state.wipes.push_back(page);
}

/// The request's last choice is released. Its indices are given back only now: till then a late
/// `finish` of any choice must find its own.
void end_request(planner_state& state, planned_request& request) {
  bool ran = false;
  for (uint32_t index : request.sequences) {
    ran = ran || state.sequences[index].ran;
    state.free_sequences.push_back(index);
  }
  request.sequences.clear();
  (ran ? state.ends : state.gone).push_back(request.ask.request);
}

/// As much of its prompt as was stored.
void keep_prompt(planner_state& state, const sequence& s) {
  const request_ask& ask = state.requests.at(s.request).ask;
  if (s.choice > 0) return;
  uint32_t pages = std::min(s.position, ask.prompt_tokens) / state.config.page_tokens;
  keep_pages(state.kept, state.pool, ask.prefix_keys, std::span(s.pages).first(pages), state.wipes);
}

/// The sequence has ended and no plan in flight reads or writes its pages.
void release(planner_state& state, sequence& s) {
  check(s.phase == sequence_phase::ended && !s.in_flight);
  if (state.config.kept_pages > 0) keep_prompt(state, s);
  for (uint32_t page : s.pages) drop_and_retire(state, page);
  if (s.fork) drop_and_retire(state, s.fork->from);
  s.pages.clear();
  s.fork.reset();
  state.scratch_dirty = state.scratch_dirty || s.ran;
  if (--state.running == 0) state.token_ns = 0;  // it told of others' lengths
  planned_request& request = state.requests.at(s.request);
  if (--request.living == 0) end_request(state, request);
}

void end_sequence(planner_state& state, uint32_t index) {
  sequence& s = state.sequences[index];
  if (s.phase == sequence_phase::ended) return;
  if (s.phase == sequence_phase::prefilling) std::erase(state.prefilling, index);
  if (s.phase == sequence_phase::decoding && !s.in_flight) std::erase(state.ready, index);
  if (s.phase == sequence_phase::decoding && s.in_flight) --state.decodes_in_flight;
  s.phase = sequence_phase::ended;
  if (!s.in_flight) release(state, s);  // else when its plan is complete
}

/// The prompt is stored: every choice decodes from here. Full pages are shared already; the last
/// one, if it is not full, is copied before its first new token is written.
void fork_choices(planner_state& state, const planned_request& request) {
  const sequence& first = state.sequences[request.sequences[0]];
  uint32_t full = first.position / state.config.page_tokens;
  uint32_t partial = first.position % state.config.page_tokens;
  for (uint32_t index : request.sequences) {
    sequence& s = state.sequences[index];
    s.phase = sequence_phase::decoding;
    s.position = first.position;
    state.ready.push_back(index);
    if (s.choice == 0 || partial == 0 || s.end == s.position) continue;
    share_page(state.pool, first.pages[full]);
    s.fork = page_copy{first.pages[full], s.pages[full], partial};
  }
}

void complete_prefill(planner_state& state, const plan_entry& e, std::vector<step_result>& out) {
  const sequence& s = state.sequences[e.sequence];
  const planned_request& request = state.requests.at(s.request);
  bool last = s.position == request.ask.prompt_tokens;
  if (e.logit_rows > 0)
    out.push_back({.request = s.request,
                   .choice = 0,
                   .position = s.position - e.logit_rows,
                   .first_logit_row = e.first_logit_row,
                   .logit_rows = e.logit_rows,
                   .samples = last});
  if (!last) return;
  std::erase(state.prefilling, e.sequence);
  fork_choices(state, request);
  for (uint32_t choice = 1; choice < request.ask.choices; ++choice)
    out.push_back({.request = s.request,
                   .choice = choice,
                   .position = s.position - 1,
                   .first_logit_row = e.first_logit_row + e.logit_rows - 1,
                   .logit_rows = 1,
                   .samples = 1});
}

void complete_decode(planner_state& state, const plan_entry& e, std::vector<step_result>& out) {
  sequence& s = state.sequences[e.sequence];
  if (s.fork) drop_and_retire(state, s.fork->from);
  s.fork.reset();
  --state.decodes_in_flight;
  state.ready.push_back(e.sequence);
  out.push_back({.request = s.request,
                 .choice = s.choice,
                 .position = e.position,
                 .first_logit_row = e.first_logit_row,
                 .logit_rows = e.logit_rows,
                 .samples = e.logit_rows});
}

void complete_entry(planner_state& state, const plan_entry& e, std::vector<step_result>& out) {
  sequence& s = state.sequences[e.sequence];
  check(s.in_flight && s.position == e.position);
  s.in_flight = false;
  // Guesses count once they are accepted; those that are not, the next decode overwrites.
  s.position += s.phase == sequence_phase::decoding ? 1 : e.tokens;
  if (s.phase == sequence_phase::ended)
    release(state, s);
  else if (s.phase == sequence_phase::prefilling)
    complete_prefill(state, e, out);
  else
    complete_decode(state, e, out);
}

}  // namespace

result<planner_state> make_planner(const planner_config& c) {
  if (c.pages == 0) return fail("pages: 0; a pool needs at least one");
  if (c.page_tokens == 0 || c.page_tokens > limits::page_tokens_max)
    return fail("page size: {} tokens; 1 to {} are possible", c.page_tokens,
                limits::page_tokens_max);
  if (c.step_tokens == 0 || c.step_tokens > limits::step_tokens_max)
    return fail("step: {} tokens; 1 to {} are possible", c.step_tokens, limits::step_tokens_max);
  if (c.chunk_max == 0) return fail("chunk: 0 tokens; at least 1 is needed");
  if (c.logit_rows == 0) return fail("logit rows: 0; at least 1 is needed");
  if (c.depth == 0) return fail("steps in flight: 0; at least 1 is needed");
  if (c.running_max == 0 || c.running_max > limits::running_max)
    return fail("running sequences: {}; 1 to {} are possible", c.running_max, limits::running_max);
  if (c.context_max > limits::context_max)
    return fail("context: {} tokens; at most {} are possible", c.context_max, limits::context_max);
  planner_state state{
      .config = c, .pool = make_page_pool(c.pages), .kept = make_kept_prefixes(c.kept_pages)};
  state.sequences.resize(c.running_max);
  for (uint32_t index = c.running_max; index-- > 0;) state.free_sequences.push_back(index);
  return state;
}

uint64_t pages_reserved_for(const request_ask& ask, uint32_t page_tokens) {
  uint64_t pages = ask.prompt_tokens / page_tokens + own_pages(ask, page_tokens, 0);
  if (ask.choices > 1) pages += uint64_t{ask.choices - 1} * own_pages(ask, page_tokens, 1);
  return pages;
}

result<void> check_ask(const planner_config& c, const request_ask& ask) {
  if (ask.prompt_tokens == 0) return fail("prompt: no tokens; at least one is needed");
  if (ask.max_tokens == 0) return fail("max_tokens: 0; at least 1 is needed");
  if (ask.choices == 0 || ask.choices > std::min(limits::choices_max, c.running_max))
    return fail("n: {}; 1 to {} choices are possible", ask.choices,
                std::min(limits::choices_max, c.running_max));
  uint64_t context = uint64_t{ask.prompt_tokens} + ask.max_tokens;
  if (context > c.context_max)
    return fail("prompt of {} tokens and max_tokens {} make {}; the context holds {}",
                ask.prompt_tokens, ask.max_tokens, context, c.context_max);
  uint64_t pages = pages_reserved_for(ask, c.page_tokens);
  if (pages > c.pages)
    return fail(
        "the request needs {} pages of {} tokens; the pool has {}: ask for fewer tokens "
        "or choices, or start with more pages",
        pages, c.page_tokens, c.pages);
  return {};
}

result<void> enqueue(planner_state& state, const request_ask& ask) {
  if (state.requests.contains(ask.request)) return fail("request: this id is already known");
  if (auto ok = check_ask(state.config, ask); !ok) return ok;
  if (state.queue.size() >= state.config.queue_max)
    return fail("queue: {} requests wait already; try again later", state.queue.size());
  state.requests.emplace(ask.request, planned_request{.ask = ask});
  state.queue.push_back(ask.request);
  return {};
}

std::optional<step_plan> plan_step(planner_state& state) {
  if (state.flights.size() >= state.config.depth) return std::nullopt;
  admit(state);
  step_plan plan;
  add_decodes(state, plan);
  add_prefills(state, plan);
  bool idle = plan.entries.empty() && state.wipes.empty() && state.ends.empty();
  if (idle && !state.scratch_dirty) return std::nullopt;
  plan.id = state.next_plan++;
  plan.wipes = std::exchange(state.wipes, {});
  plan.wipe_scratch = std::exchange(state.scratch_dirty, false);
  state.flights.push_back({plan.id, std::exchange(state.ends, {})});
  return plan;
}

const sequence& sequence_of(const planner_state& state, const plan_entry& entry) {
  check(entry.sequence < state.sequences.size());
  return state.sequences[entry.sequence];
}

std::vector<step_result> complete(planner_state& state, const step_plan& plan) {
  check(!state.flights.empty() && state.flights.front().plan == plan.id);
  std::vector<step_result> out;
  out.reserve(plan.entries.size());
  for (const plan_entry& e : plan.entries) complete_entry(state, e, out);
  for (uint32_t page : plan.wipes) free_wiped_page(state.pool, page);
  // All that these requests held was wiped by this plan or an earlier one.
  const auto& ends = state.flights.front().ends;
  state.gone.insert(state.gone.end(), ends.begin(), ends.end());
  state.flights.pop_front();
  return out;
}

void finish(planner_state& state, uint64_t request, uint32_t choice) {
  auto found = state.requests.find(request);
  check(found != state.requests.end());
  const planned_request& r = found->second;
  check(choice < r.ask.choices);
  if (r.sequences.empty()) return;  // cancelled meanwhile
  uint32_t index = r.sequences[choice];
  sequence_phase phase = state.sequences[index].phase;
  check(phase == sequence_phase::decoding || phase == sequence_phase::ended);
  end_sequence(state, index);
}

bool cancel(planner_state& state, uint64_t request) {
  auto found = state.requests.find(request);
  if (found == state.requests.end()) return false;
  if (std::erase(state.queue, request) > 0) {
    state.gone.push_back(request);
    return true;
  }
  const std::vector<uint32_t> indices = found->second.sequences;  // cleared with the last one
  for (uint32_t index : indices) end_sequence(state, index);
  return true;
}

std::vector<uint64_t> take_gone(planner_state& state) {
  for (uint64_t request : state.gone) state.requests.erase(request);
  return std::exchange(state.gone, {});
}

}  // namespace lethe
