// The lab's engine keeps pages of prompts for others; no other does.
#include "runtime/batch/kept_prefixes.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>

#include "runtime/batch/planner.hpp"

namespace lethe {
namespace {

constexpr uint32_t page_tokens = 4;

/// Plans and completes until nothing is left to do; what each request's prompt took.
class KeptPrefixes : public testing::Test {
 protected:
  void begin(uint32_t pages, uint32_t kept) {
    auto made = make_planner({.pages = pages,
                              .page_tokens = page_tokens,
                              .step_tokens = 64,
                              .chunk_max = 64,
                              .logit_rows = 8,
                              .running_max = 8,
                              .context_max = 256,
                              .kept_pages = kept});
    ASSERT_TRUE(made) << made.why().text;
    state = *std::move(made);
  }

  uint32_t computed_for(const std::vector<uint32_t>& prompt, uint32_t choices = 1,
                        bool prompt_logits = false) {
    const uint64_t id = next++;
    EXPECT_TRUE(enqueue(state, {.request = id,
                                .prompt_tokens = uint32_t(prompt.size()),
                                .max_tokens = 2,
                                .choices = choices,
                                .prompt_logits = prompt_logits,
                                .prefix_keys = keys_of(state.kept, prompt, page_tokens)}));
    uint32_t computed = 0;
    std::map<uint32_t, uint32_t> made;
    while (auto plan = plan_step(state)) {
      for (const auto& e : plan->entries)
        if (e.position < prompt.size()) computed += e.tokens;
      for (uint32_t page : plan->wipes) wiped.insert(page);
      for (const auto& r : complete(state, *plan))
        if (r.samples == 1 && ++made[r.choice] == 2) finish(state, r.request, r.choice);
      for (uint64_t gone : take_gone(state)) EXPECT_EQ(gone, id);
      hold_together();
    }
    EXPECT_TRUE(state.requests.empty());
    return computed;
  }
  void hold_together() const {
    const auto& pool = state.pool;
    EXPECT_EQ(pool.used + pool.retiring + pool.free, pool.total());
    EXPECT_EQ(state.kept.pages.size(), state.kept.order.size());
    EXPECT_LE(state.kept.pages.size(), state.config.kept_pages);
    for (const auto& [key, page] : state.kept.pages) {
      EXPECT_EQ(pool.pages[page].state, page_state::used);
      EXPECT_TRUE(pool.pages[page].written);
    }
  }

  planner_state state;
  uint64_t next = 1;
  std::set<uint32_t> wiped;
};

const std::vector<uint32_t> first = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
const std::vector<uint32_t> longer = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
const std::vector<uint32_t> other = {2, 2, 3, 4, 5, 6, 7, 8, 9, 10};

TEST_F(KeptPrefixes, NothingIsKeptUnlessItIsAsked) {
  begin(16, 0);
  for (const auto& prompt : {first, first, longer}) EXPECT_EQ(computed_for(prompt), prompt.size());
  EXPECT_EQ(state.pool.used, 0u);
  EXPECT_EQ(state.pool.free, 16u);
}

TEST_F(KeptPrefixes, WholePagesOfAPromptThatBeginsAlikeAreNotComputedAgain) {
  begin(16, 8);
  EXPECT_EQ(computed_for(first), 10u);
  EXPECT_EQ(computed_for(first), 2u);
  EXPECT_EQ(computed_for(longer), 4u);
  EXPECT_EQ(computed_for(longer), 4u) << "the last token is computed always, and its page with it";
  EXPECT_EQ(computed_for(other), 10u) << "it begins otherwise";
  EXPECT_EQ(computed_for(first, 3), 2u) << "for all choices";
  EXPECT_EQ(computed_for(first, 1, true), 10u) << "it wants what every token of it says";
}

TEST_F(KeptPrefixes, TheOldestGoAndAreWiped) {
  begin(16, 2);
  computed_for(first);
  std::set<uint32_t> kept;
  for (const auto& [key, page] : state.kept.pages) kept.insert(page);
  ASSERT_EQ(kept.size(), 2u);
  for (uint32_t page : kept) EXPECT_FALSE(wiped.contains(page));
  wiped.clear();
  computed_for(other);
  for (uint32_t page : kept) EXPECT_TRUE(wiped.contains(page));
  EXPECT_EQ(computed_for(first), 10u);
}

TEST_F(KeptPrefixes, WhoNeedsTheirPagesGetsThem) {
  begin(4, 3);
  computed_for(first);
  EXPECT_EQ(state.kept.pages.size(), 2u);
  EXPECT_EQ(computed_for({9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}), 14u) << "all four pages";
  EXPECT_EQ(state.kept.pages.size(), 3u);
}

/// Random requests with few beginnings, and pages that hold whose token is where: what a sequence
/// reads is always its own, however it came there.
class random_keeper {
 public:
  explicit random_keeper(uint64_t seed)
      : dice_(seed),
        state_(*make_planner({.pages = 24,
                              .page_tokens = page_tokens,
                              .step_tokens = 16,
                              .chunk_max = 6,
                              .logit_rows = 8,
                              .depth = 2,
                              .running_max = 6,
                              .queue_max = 8,
                              .context_max = 64,
                              .kept_pages = 10})),
        cells_(24 * page_tokens) {}

  void run(uint32_t turns) {
    for (uint32_t i = 0; i < turns; ++i) turn(dice_() % 8);
    while (!state_.requests.empty() || !flights_.empty()) turn(2 + dice_() % 5);
    EXPECT_EQ(state_.pool.used, state_.kept.pages.size());
  }

  uint64_t asked = 0, began_later = 0;  // of prompts whose first pages were there

 private:
  void turn(uint64_t what) {
    if (what < 2) return ask();
    if (what == 7) return void(cancel(state_, 1 + dice_() % (next_ + 1)));
    if (what < 5) return plan();
    if (!flights_.empty()) complete_oldest();
    for (uint64_t id : take_gone(state_)) sampled_.erase(id);
  }
  void ask() {
    std::vector<uint32_t> prompt(1 + dice_() % 30, uint32_t(1 + dice_() % 2));
    if (dice_() % 2) prompt.back() = 9;
    request_ask a{.request = next_++,
                  .prompt_tokens = uint32_t(prompt.size()),
                  .max_tokens = uint32_t(1 + dice_() % 8),
                  .choices = uint32_t(1 + dice_() % 2),
                  .prefix_keys = keys_of(state_.kept, prompt, page_tokens)};
    if (!enqueue(state_, a)) return;
    prompts_[a.request] = prompt;
    sampled_[a.request].resize(a.choices);
    ++asked;
  }
  uint32_t token_of(uint64_t id, uint32_t choice, uint32_t position) const {
    const auto& prompt = prompts_.at(id);
    return position < prompt.size() ? prompt[position]
                                    : uint32_t(1000 + id * 256 + choice * 64 + position);
  }
  void plan() {
    auto made = plan_step(state_);
    if (!made) return;
    for (uint32_t page : made->wipes) std::fill_n(&cells_[page * page_tokens], page_tokens, 0u);
    for (const auto& c : made->copies)
      std::copy_n(&cells_[c.from * page_tokens], c.tokens, &cells_[c.to * page_tokens]);
    for (const auto& e : made->entries) execute(*made, e);
    flights_.push_back(*std::move(made));
  }
  void execute(const step_plan& made, const plan_entry& e) {
    const sequence& s = sequence_of(state_, e);
    if (begun_.insert(s.request).second) began_later += e.position > 0;
    auto cell = [&](uint32_t position) -> uint32_t& {
      uint32_t page = made.pages.at(e.first_page + position / page_tokens);
      return cells_[page * page_tokens + position % page_tokens];
    };
    for (uint32_t i = e.position; i < e.position + e.tokens; ++i) {
      EXPECT_EQ(cell(i), 0u) << "it was not wiped";
      cell(i) = token_of(s.request, s.choice, i);
    }
    for (uint32_t i = 0; i < e.position; ++i)
      EXPECT_EQ(cell(i), token_of(s.request, s.choice, i)) << "it reads what is not its own";
  }
  void complete_oldest() {
    for (const auto& r : complete(state_, flights_.front()))
      if (r.samples == 1 &&
          ++sampled_[r.request][r.choice] == state_.requests.at(r.request).ask.max_tokens)
        finish(state_, r.request, r.choice);
    flights_.pop_front();
    const auto& pool = state_.pool;
    EXPECT_EQ(pool.used + pool.retiring + pool.free, pool.total());
    EXPECT_LE(state_.kept.pages.size(), 10u);
  }

  std::mt19937_64 dice_;
  planner_state state_;
  std::vector<uint32_t> cells_;  // token; 0: wiped
  std::deque<step_plan> flights_;
  std::map<uint64_t, std::vector<uint32_t>> prompts_, sampled_;
  std::set<uint64_t> begun_;
  uint64_t next_ = 1;
};

TEST(KeptPrefixesAtRandom, NobodyReadsWhatIsNotTheirOwn) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    random_keeper keeper(seed);
    keeper.run(2000);
    EXPECT_GT(keeper.asked, 100u);
    EXPECT_GT(keeper.began_later, 10u) << "nothing was used again";
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace lethe
