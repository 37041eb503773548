#pragma once

#include <deque>
#include <functional>
#include <unordered_map>

#include "runtime/batch/engine.hpp"
#include "runtime/batch/inbox.hpp"
#include "runtime/batch/planner.hpp"
#include "runtime/batch/step_buffers.hpp"

namespace lethe {

/// The clock that a step loop has unless it is given another.
uint64_t steady_ns();

/// Plans, hands steps to the ranks, samples, tells requests. One thread runs it, or turns it step
/// by step; others write to `box` and read `board`.
class step_loop {
 public:
  step_loop(planner_state planner, std::unique_ptr<step_ranks> ranks, step_buffers buffers,
            uint32_t vocab)
      : planner_(std::move(planner)),
        ranks_(std::move(ranks)),
        buffers_(std::move(buffers)),
        vocab_(vocab) {}

  /// settled: a step is complete. idle: there is nothing to do until a letter comes. over: shutdown
  /// was asked and everything is wiped.
  enum class turned : uint8_t { settled, idle, over };
  turned turn();
  /// Turns until it is over.
  void run();

  inbox box;
  engine_board board;
  /// Requests submitted and not gone.
  std::atomic<uint32_t> outstanding{0};
  /// In nanoseconds. The simulation has its own; set before anything is submitted.
  std::function<uint64_t()> now = steady_ns;
  step_watcher* watch = nullptr;

  const step_ranks& ranks() const { return *ranks_; }
  const step_buffers& buffers() const { return buffers_; }
  /// For whoever turns it.
  const planner_state& planner() const { return planner_; }

 private:
  void read_inbox();
  void admit(const letter& l);
  bool launch();
  void leave_draws(step_plan& plan) const;
  void settle();
  bool works_beside(const step_plan& plan) const;
  void prepare_masks();
  void take_prompt_row(request& of, uint32_t position, std::span<const float> row);
  /// A token that a step brought the logits of, or that came drawn. Behind guesses a choice has
  /// several, side by side: each counts where every guess before it was right.
  struct draw {
    request* of;
    uint32_t choice;
    uint32_t ahead;  // draws of its choice before it
    std::span<const float> row;
    const uint64_t* allowed;
    bool came;
    sampled drawn;

    choice_state& state() const;
    bool stops() const;
  };
  void ask_for_token(request& of, uint32_t choice, uint32_t ahead, std::span<const float> row,
                     const uint32_t* came);
  void draw_all();
  static void draw_one(draw& d, sampler_scratch& scratch);
  void take_tokens(std::span<const draw> of_choice, uint64_t at_ns);
  /// Whether the choice goes on.
  bool take_token(const draw& d, uint64_t at_ns);
  void look_ahead(request& of, uint32_t choice);
  /// Before its least number of tokens.
  static bool is_early(const request& of, uint32_t choice);
  /// What the choice's form allows next, its ends included; null when it allows nothing.
  static const uint64_t* mask_of(request& of, uint32_t choice);
  void stop(request& of, uint32_t choice);
  void end(request& of, uint32_t choice, finish_reason why);
  static void mark_ended(request& r, finish_reason why);
  void cancel_all(request& r, finish_reason why);
  static void mark_token(request& of, choice_state& c, uint64_t at_ns);
  void tell_later(request& of);
  void tell();
  void forget(uint64_t id);
  void die(const error& why);
  void count(const step_plan& plan);
  void show();

  planner_state planner_;
  std::unique_ptr<step_ranks> ranks_;
  step_buffers buffers_;
  uint32_t vocab_;
  std::unordered_map<uint64_t, request*> requests_;
  std::deque<uint32_t> flights_;   // slots of buffers_, oldest first
  std::vector<draw> draws_;        // of the step that settles; wiped with it
  std::vector<request*> changed_;  // since they were last told
  engine_numbers numbers_;
  bool stopping_ = false, dead_ = false;
};

/// What the planner needs to know of a request.
request_ask ask_of(const request& r, uint64_t id);

}  // namespace lethe
