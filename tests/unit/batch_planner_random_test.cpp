// Random operation sequences against a shard that keeps, instead of keys and values, whose token
// each page row holds. A failing seed is printed; LETHE_SEED=<seed> repeats it alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "runtime/batch/planner.hpp"

namespace lethe {
namespace {

constexpr uint32_t of_prompt = ~0u;

struct row {
  uint64_t request = 0;  // 0: wiped
  uint32_t choice = 0;   // of_prompt: the same for all choices
  uint32_t position = 0;
  bool guess = false;  // and not accepted
  bool operator==(const row&) const = default;
};

struct choice_model {
  uint32_t stored = 0, sampled = 0, guesses = 0;
  uint64_t ready_since = 0;
  bool decoding = false, ended = false, in_flight = false;
};

struct request_model {
  request_ask ask;
  std::vector<choice_model> choices;
  uint64_t last_plan = 0;  // that computed for it
  uint32_t prompt_rows = 0;
  bool cancelled = false;
};

struct flying {
  step_plan plan;
  std::vector<std::pair<uint64_t, uint32_t>> who;  // per entry
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> guesses;
  bool executed = false;
};

class world {
 public:
  explicit world(uint64_t seed) : dice_(seed) {
    planner_config c;
    c.page_tokens = pick({1, 2, 3, 7, 16, 64});
    c.pages = roll(1, 40);
    c.step_tokens = pick({1, 2, 5, 16, 64, 256});
    c.chunk_max = pick({1, 3, 8, 64, 256});
    c.logit_rows = pick({1, 2, 4, 64});
    c.depth = roll(1, 4);
    c.running_max = pick({1, 3, 8, 64});
    c.queue_max = roll(1, 12);
    c.context_max = 300;
    c.guess_rows = pick({0, 1, 4, 64});
    auto made = make_planner(c);
    if (made) state_ = *std::move(made);
    memory_.resize(size_t{c.pages} * c.page_tokens);
  }

  void run(uint32_t steps) {
    for (uint32_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      switch (roll(0, 9)) {
        case 0:
        case 1:
          ask();
          break;
        case 2:
        case 3:
        case 4:
          plan();
          break;
        case 5:
          execute_one();
          break;
        case 6:
          if (roll(0, 9) == 0) cancel_one();
          break;
        default:
          complete_oldest();
          break;
      }
      check_pool();
      check_gone();
    }
    drain();
  }

  uint64_t ended = 0, forks = 0, wiped = 0, refused = 0, plans = 0, guesses = 0, accepted = 0;

 private:
  uint32_t roll(uint32_t from, uint32_t to) {
    return std::uniform_int_distribution<uint32_t>(from, to)(dice_);
  }
  uint32_t pick(std::initializer_list<uint32_t> of) {
    return of.begin()[roll(0, uint32_t(of.size()) - 1)];
  }
  const planner_config& config() const { return state_.config; }
  row& at(uint32_t page, uint32_t r) { return memory_[size_t{page} * config().page_tokens + r]; }

  void ask() {
    request_ask a{.request = next_++,
                  .prompt_tokens = roll(1, roll(0, 3) ? 30 : 200),
                  .max_tokens = roll(0, 4) ? roll(1, 40) : 1,
                  .choices = roll(0, 2) ? 1 : roll(1, 5),
                  .prompt_logits = roll(0, 4) == 0};
    bool fits = pages_by_hand(a) <= config().pages && a.choices <= config().running_max &&
                state_.queue.size() < config().queue_max;
    auto done = enqueue(state_, a);
    ASSERT_EQ(bool(done), fits) << (done ? "" : done.why().text);
    if (!fits) {
      ++refused;
      return;
    }
    requests_[a.request] = {.ask = a, .choices = std::vector<choice_model>(a.choices)};
    order_.push_back(a.request);
    EXPECT_FALSE(enqueue(state_, a)) << "a known id";
  }

  /// Every page that some choice needs, shared ones as one, counted the long way.
  uint64_t pages_by_hand(const request_ask& a) const {
    std::set<std::pair<uint32_t, uint32_t>> pages;
    for (uint32_t c = 0; c < a.choices; ++c)
      for (uint32_t p = 0; p + 1 < a.prompt_tokens + a.max_tokens; ++p) {
        uint32_t page = p / config().page_tokens;
        bool shared = (page + 1) * config().page_tokens <= a.prompt_tokens;
        if (c > 0 && a.max_tokens == 1) continue;  // decodes nothing
        pages.insert({shared ? of_prompt : c, page});
      }
    return pages.size();
  }

  void plan() {
    size_t decoding = 0, ready = 0;
    for (auto& [id, r] : requests_)
      for (auto& c : r.choices)
        if (c.decoding && !c.ended) ++decoding, ready += !c.in_flight;
    bool full = flights_.size() >= config().depth;
    auto made = plan_step(state_);
    if (made && full) ADD_FAILURE() << "more plans in flight than the depth";
    if (!full) check_admission();
    if (!made) {
      EXPECT_TRUE(full || ready == 0) << "runnable decodes and no plan";
      return;
    }
    ++plans;
    size_t due = std::min({(decoding + config().depth - 1) / config().depth, ready,
                           size_t{config().step_tokens}, size_t{config().logit_rows}});
    flying f{.plan = *std::move(made)};
    check_plan(f, due);
    EXPECT_EQ(decoding, state_.ready.size() + state_.decodes_in_flight);
    uint32_t taken = uint32_t(due) + guesses_of(f);
    EXPECT_LE(f.plan.tokens - taken, prompt_tokens_beside(state_, taken));
    scratch_wiped_by_ = f.plan.wipe_scratch ? f.plan.id : scratch_wiped_by_;
    flights_.push_back(std::move(f));
  }

  static uint32_t guesses_of(const flying& f) {
    uint32_t n = 0;
    for (const auto& [who, tokens] : f.guesses) n += tokens;
    return n;
  }

  void check_admission() {
    bool waiting = false;
    for (uint64_t id : order_) {
      auto found = state_.requests.find(id);
      if (found == state_.requests.end() || requests_[id].cancelled) continue;
      bool queued = std::count(state_.queue.begin(), state_.queue.end(), id) > 0;
      EXPECT_FALSE(waiting && !queued) << "request " << id << " overtook";
      waiting = waiting || queued;
    }
    if (state_.queue.empty()) return;
    const request_ask& head = requests_[state_.queue.front()].ask;
    EXPECT_TRUE(pages_by_hand(head) > state_.pool.free ||
                head.choices > state_.free_sequences.size())
        << "the head fits and waits";
  }

  void check_plan(flying& f, size_t decodes_due) {
    const step_plan& p = f.plan;
    EXPECT_LE(p.tokens, config().step_tokens);
    EXPECT_LE(p.logit_rows, config().logit_rows);
    uint32_t tokens = 0, rows = 0, pages = 0;
    size_t decodes = 0;
    uint64_t prefill_before = 0, newest_taken = 0;
    for (const plan_entry& e : p.entries) {
      const sequence& s = sequence_of(state_, e);
      ASSERT_TRUE(requests_.contains(s.request));
      request_model& r = requests_[s.request];
      choice_model& c = r.choices[s.choice];
      EXPECT_FALSE(r.cancelled || c.ended) << "computes for the dead";
      EXPECT_FALSE(c.in_flight) << "in two plans";
      EXPECT_EQ(e.position, c.stored);
      EXPECT_EQ(e.first_token, tokens);
      EXPECT_EQ(e.first_logit_row, rows);
      EXPECT_EQ(e.first_page, pages);
      EXPECT_EQ(e.page_count, (e.position + e.tokens - 1) / config().page_tokens + 1);
      tokens += e.tokens, rows += e.logit_rows, pages += e.page_count;
      if (c.decoding) {
        EXPECT_EQ(prefill_before, 0u) << "a prompt chunk before a decode";
        EXPECT_LE(e.tokens, 1 + c.guesses);
        EXPECT_EQ(e.logit_rows, e.tokens);
        f.guesses[{s.request, s.choice}] = e.tokens - 1;
        guesses += e.tokens - 1;
        c.guesses = 0;
        ++decodes;
        newest_taken = std::max(newest_taken, c.ready_since);
      } else {
        EXPECT_EQ(s.choice, 0u);
        EXPECT_GT(s.request, prefill_before) << "not in order of admission";
        EXPECT_LE(e.tokens, config().chunk_max);
        bool last = e.position + e.tokens == r.ask.prompt_tokens;
        EXPECT_EQ(e.logit_rows, r.ask.prompt_logits ? e.tokens : uint32_t{last});
        prefill_before = s.request;
      }
      c.in_flight = true;
      r.last_plan = p.id;
      f.who.push_back({s.request, s.choice});
    }
    EXPECT_EQ(tokens, p.tokens);
    EXPECT_EQ(rows, p.logit_rows);
    EXPECT_EQ(pages, p.pages.size());
    EXPECT_EQ(decodes, decodes_due);
    uint32_t tried = guesses_of(f);
    EXPECT_TRUE(tried == 0 || decodes + tried <= config().guess_rows) << "more guesses than may be";
    for (auto& [id, r] : requests_)
      for (auto& c : r.choices)
        if (c.decoding && !c.ended && !c.in_flight) {
          EXPECT_GE(c.ready_since, newest_taken) << "a longer waiting decode was left out";
        }
    EXPECT_TRUE(!p.entries.empty() || !p.wipes.empty() || p.wipe_scratch) << "an empty plan";
    forks += p.copies.size(), wiped += p.wipes.size();
  }

  /// What a shard does: wipes, copies, computes.
  void execute_one() {
    auto f = std::find_if(flights_.begin(), flights_.end(), [](auto& x) { return !x.executed; });
    if (f == flights_.end()) return;
    f->executed = true;
    for (uint32_t page : f->plan.wipes)
      for (uint32_t r = 0; r < config().page_tokens; ++r) at(page, r) = {};
    for (const page_copy& c : f->plan.copies)
      for (uint32_t r = 0; r < c.tokens; ++r) {
        EXPECT_EQ(at(c.to, r), row{}) << "a copy onto a page that was not wiped";
        at(c.to, r) = at(c.from, r);
      }
    for (size_t i = 0; i < f->plan.entries.size(); ++i)
      compute(f->plan, f->plan.entries[i], f->who[i].first, f->who[i].second);
  }

  void compute(const step_plan& p, const plan_entry& e, uint64_t request, uint32_t choice) {
    uint32_t prompt = requests_[request].ask.prompt_tokens;
    auto right = [&](uint32_t position) {
      return row{request, position < prompt ? of_prompt : choice, position};
    };
    auto page_of = [&](uint32_t position) {
      return p.pages[e.first_page + position / config().page_tokens];
    };
    for (uint32_t i = e.position; i < e.position + e.tokens; ++i) {
      row& to = at(page_of(i), i % config().page_tokens);
      row wrong = right(i);
      wrong.guess = true;
      EXPECT_TRUE(to == row{} || to == wrong)
          << "written twice, or not wiped: holds " << to.request;
      to = right(i);
      to.guess = e.position >= prompt && i > e.position;
    }
    for (uint32_t i = 0; i < e.position + e.tokens; ++i) {
      row seen = at(page_of(i), i % config().page_tokens);
      EXPECT_TRUE(!seen.guess || i > e.position) << "reads a guess that was wrong";
      seen.guess = false;
      EXPECT_EQ(seen, right(i)) << "reads another's token";
    }
  }

  void complete_oldest() {
    if (flights_.empty()) return;
    while (!flights_.front().executed) execute_one();
    flying f = std::move(flights_.front());
    flights_.pop_front();
    std::set<std::pair<uint64_t, uint32_t>> expected;
    for (size_t i = 0; i < f.who.size(); ++i) step_done(f, i, expected);
    learn_pace(state_, f.plan, f.plan.tokens * uint64_t{pick({0, 1'000, 5'000'000, 50'000'000})});
    for (const step_result& got : complete(state_, f.plan)) {
      EXPECT_EQ(expected.erase({got.request, got.choice}), 1u) << "an unexpected result";
      take_result(f, got);
    }
    EXPECT_TRUE(expected.empty()) << "a result is missing";
    completed_ = f.plan.id;
  }

  void step_done(const flying& f, size_t i, std::set<std::pair<uint64_t, uint32_t>>& expected) {
    const plan_entry& e = f.plan.entries[i];
    request_model& r = requests_[f.who[i].first];
    choice_model& c = r.choices[f.who[i].second];
    c.in_flight = false;
    if (r.cancelled || c.ended) return;
    c.stored += c.decoding ? 1 : e.tokens;
    if (e.logit_rows > 0) expected.insert(f.who[i]);
    if (c.decoding) {
      c.ready_since = ++now_;
    } else if (c.stored == r.ask.prompt_tokens) {
      for (uint32_t n = 0; n < r.ask.choices; ++n) {
        r.choices[n].decoding = true;
        r.choices[n].stored = r.ask.prompt_tokens;
        r.choices[n].ready_since = ++now_;
        expected.insert({f.who[i].first, n});
      }
    }
  }

  void take_result(const flying& f, const step_result& got) {
    request_model& r = requests_[got.request];
    choice_model& c = r.choices[got.choice];
    bool found = false;
    for (size_t i = 0; i < f.who.size(); ++i) {
      const plan_entry& e = f.plan.entries[i];
      if (f.who[i].first != got.request) continue;
      uint32_t first = e.position + e.tokens - e.logit_rows;
      bool inside = got.position >= first && got.position < e.position + e.tokens;
      if (inside && (f.who[i].second == got.choice || c.sampled == 0)) {
        EXPECT_EQ(got.first_logit_row, e.first_logit_row + got.position - first);
        found = true;
      }
    }
    EXPECT_TRUE(found) << "rows that the plan did not compute";
    auto guessed = f.guesses.find({got.request, got.choice});
    uint32_t samples = guessed == f.guesses.end() ? 1 : 1 + guessed->second;
    bool gives = got.position + got.logit_rows >= r.ask.prompt_tokens + c.sampled;
    EXPECT_EQ(got.samples, gives ? samples : 0);
    if (r.ask.prompt_logits && got.choice == 0 && c.sampled == 0) {
      EXPECT_EQ(got.position, r.prompt_rows);
      r.prompt_rows += got.logit_rows;
    } else {
      EXPECT_EQ(got.logit_rows, samples);
    }
    for (uint32_t i = 0; i < got.samples; ++i) {
      ++c.sampled;
      if (c.sampled == r.ask.max_tokens || roll(0, 14) == 0) {
        c.ended = true;
        return finish(state_, got.request, got.choice);
      }
      if (i + 1 == got.samples || roll(0, 2) == 0) break;
      accept_one(got.request, got.choice);
    }
    if (got.samples == 0) return;
    c.guesses = roll(0, 5);
    guess(state_, got.request, got.choice, c.guesses);
  }

  void accept_one(uint64_t request, uint32_t choice) {
    choice_model& c = requests_[request].choices[choice];
    accept_guess(state_, request, choice);
    const auto& pages = state_.sequences[state_.requests.at(request).sequences[choice]].pages;
    at(pages[c.stored / config().page_tokens], c.stored % config().page_tokens).guess = false;
    ++c.stored;
    ++accepted;
  }

  void cancel_one() {
    if (requests_.empty()) return;
    auto it = requests_.begin();
    std::advance(it, roll(0, uint32_t(requests_.size()) - 1));
    it->second.cancelled = true;
    for (auto& c : it->second.choices) c.ended = true;
    EXPECT_TRUE(cancel(state_, it->first));
    EXPECT_FALSE(cancel(state_, next_)) << "an unknown request";
  }

  void check_gone() {
    for (uint64_t id : take_gone(state_)) {
      ASSERT_TRUE(requests_.contains(id)) << "gone twice";
      const request_model& r = requests_[id];
      for (const auto& c : r.choices) EXPECT_TRUE(c.ended && !c.in_flight);
      for (const row& x : memory_) EXPECT_NE(x.request, id) << "gone, and its tokens remain";
      if (r.last_plan > 0) {
        EXPECT_GT(scratch_wiped_by_, r.last_plan) << "gone, and its scratch remains";
        EXPECT_GT(completed_, r.last_plan);
      }
      requests_.erase(id);
      ++ended;
    }
  }

  void check_pool() {
    const page_pool& pool = state_.pool;
    std::vector<uint32_t> refs(pool.total());
    std::vector<uint64_t> owner(pool.total());
    for (uint32_t index = 0; index < state_.sequences.size(); ++index) {
      const sequence& s = state_.sequences[index];
      for (uint32_t i = 0; i < s.pages.size(); ++i) {
        uint32_t page = s.pages[i];
        ++refs[page];
        EXPECT_TRUE(owner[page] == 0 || owner[page] == s.request) << "a page with two owners";
        if (owner[page] != 0) {
          EXPECT_LE((i + 1) * config().page_tokens, requests_[s.request].ask.prompt_tokens)
              << "shared, and not a full page of the prompt";
        }
        owner[page] = s.request;
      }
    }
    for (const sequence& s : state_.sequences)
      if (s.fork) ++refs[s.fork->from];
    std::set<uint32_t> retiring(state_.wipes.begin(), state_.wipes.end());
    for (const flying& f : flights_) retiring.insert(f.plan.wipes.begin(), f.plan.wipes.end());
    EXPECT_EQ(retiring.size(), pool.retiring);
    EXPECT_EQ(pool.used + pool.retiring + pool.free, pool.total());
    uint32_t free = 0, used = 0, holding = 0;
    for (uint32_t page = 0; page < pool.total(); ++page) {
      const auto& p = pool.pages[page];
      EXPECT_EQ(p.refs, refs[page]);
      EXPECT_EQ(p.state == page_state::used, refs[page] > 0);
      EXPECT_EQ(p.state == page_state::retiring, retiring.contains(page));
      free += p.state == page_state::free;
      used += p.state == page_state::used;
      holding += p.state == page_state::used && p.written;
      for (uint32_t r = 0; r < config().page_tokens && p.state == page_state::free; ++r)
        EXPECT_EQ(at(page, r), row{}) << "a free page holds a token";
    }
    EXPECT_EQ(pool.free, free);
    planner_load load = load_of(state_);
    EXPECT_EQ(load.pages_reserved, used);
    EXPECT_EQ(load.pages_holding, holding);
    if (flights_.empty()) check_tokens_stored(load);
  }

  void check_tokens_stored(const planner_load& load) {
    uint64_t tokens = 0;
    for (const sequence& s : state_.sequences)
      if (s.fork) return;  // pins a page of which it counts no tokens
    for (size_t i = 0; i < memory_.size(); ++i) {
      auto state = state_.pool.pages[i / config().page_tokens].state;
      const row& r = memory_[i];
      tokens += state == page_state::used && r.request != 0 && !r.guess;
    }
    EXPECT_EQ(load.tokens_stored, tokens);
  }

  void drain() {
    for (uint32_t i = 0; i < 100000 && !requests_.empty(); ++i) {
      if (::testing::Test::HasFailure()) return;
      plan();
      complete_oldest();
      check_pool();
      check_gone();
    }
    EXPECT_TRUE(requests_.empty()) << requests_.size() << " requests never ended";
    while (!flights_.empty()) complete_oldest();
    while (!flights_.empty() || state_.scratch_dirty) plan(), complete_oldest();
    EXPECT_EQ(state_.pool.free, state_.pool.total());
    EXPECT_EQ(state_.running, 0u);
    EXPECT_EQ(state_.free_sequences.size(), state_.sequences.size());
    for (const row& x : memory_) EXPECT_EQ(x, row{});
    EXPECT_FALSE(plan_step(state_)) << "work for nobody";
  }

  std::mt19937_64 dice_;
  planner_state state_;
  std::vector<row> memory_;
  std::map<uint64_t, request_model> requests_;
  std::vector<uint64_t> order_;
  std::deque<flying> flights_;
  uint64_t next_ = 1, now_ = 0, scratch_wiped_by_ = 0, completed_ = 0;
};

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* given = std::getenv(name);
  return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

TEST(PlannerRandom, KeepsItsPromisesWhateverHappens) {
#ifdef LETHE_SANITIZED
  constexpr uint64_t usual = 30;  // some 15 times slower there
#else
  constexpr uint64_t usual = 150;
#endif
  uint64_t first = number_from("LETHE_SEED", 1);
  uint64_t count = number_from("LETHE_SEEDS", std::getenv("LETHE_SEED") ? 1 : usual);
  uint64_t ended = 0, forks = 0, wiped = 0, refused = 0, plans = 0, guesses = 0, accepted = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("repeat with LETHE_SEED=" + std::to_string(seed));
    world w(seed);
    w.run(2000);
    ended += w.ended, forks += w.forks, wiped += w.wiped, refused += w.refused, plans += w.plans;
    guesses += w.guesses, accepted += w.accepted;
    ASSERT_FALSE(HasFailure());
  }
  std::printf("%lu plans, %lu requests ended, %lu refused, %lu pages copied, %lu wiped\n", plans,
              ended, refused, forks, wiped);
  if (count < usual) return;
  EXPECT_GT(ended, 500u);  // the test has seen what it is about
  EXPECT_GT(refused, 100u);
  EXPECT_GT(forks, 30u);
  EXPECT_GT(accepted, 300u);
  EXPECT_GT(guesses, accepted + 300);
}

}  // namespace
}  // namespace lethe
