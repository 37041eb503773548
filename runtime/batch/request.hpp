#pragma once

#include <atomic>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "runtime/arena/arena.hpp"
#include "runtime/base/histogram.hpp"
#include "runtime/base/result.hpp"
#include "runtime/batch/lookahead.hpp"
#include "runtime/batch/sampler.hpp"
#include "runtime/grammar/grammar_run.hpp"

namespace lethe {

/// stuck: nothing may follow in the form that was asked for, or finding it takes more than a token
/// may. It would again.
enum class finish_reason : uint8_t { none, stop, length, cancelled, failed, stuck };
const char* name_of(finish_reason r);

/// Which answers are allowed. The rules, compiled in the request's memory, go over to the request;
/// the words stay their owner's, who keeps them as long as the engine runs.
struct answer_constraint {
  grammar* rules = nullptr;  // null: any answer
  const token_trie* words = nullptr;
};

/// What a request asks of the engine. The spans are copied into its arena.
struct generate_ask {
  std::span<const uint32_t> prompt;
  uint32_t max_tokens = 0;  // at least one; engine_config has the default
  uint32_t min_tokens = 0;  // before them no stop id is drawn
  uint32_t choices = 1;
  sampling how;                        // with its bias
  std::span<const uint32_t> stop_ids;  // end a choice; never part of its ids
  bool prompt_logprobs = false;
  answer_constraint form;
};

/// What the engine writes of one choice. The owner reads ids[0, published) and what runs beside it.
struct choice_state {
  explicit choice_state(std::pmr::memory_resource* memory)
      : ids(memory), logprobs(memory), top(memory), counts(memory) {}

  std::pmr::vector<uint32_t> ids;       // behind the published ones: guesses
  std::pmr::vector<float> logprobs;     // beside ids, if asked
  std::pmr::vector<token_logprob> top;  // how.logprobs for each id
  token_counts counts;
  lookahead ahead;
  std::atomic<uint32_t> published{0};
  std::atomic<finish_reason> reason{finish_reason::none};
  uint64_t last_ns = 0;  // when the last id came
};

/// When things happened to a request, by the step loop's clock; 0: never.
struct request_times {
  uint64_t asked_ns = 0;          // it was submitted
  uint64_t begun_ns = 0;          // its first step began
  uint64_t first_ns = 0;          // its first token was there
  uint64_t last_ns = 0;           // its last
  time_histogram between_tokens;  // of each choice
};

/// Told of every change by the step loop's thread, for owners that can't sleep in `wait`.
class request_watcher {
 public:
  virtual ~request_watcher() = default;
  virtual void changed() = 0;
};

/// One request. Everything on this host that derives from it lives in its arena, which its owner
/// destroys with `forget`. The engine writes, the owner reads what is published.
class request {
 public:
  /// An empty request; the owner first makes its texts and ids in `memory()`.
  static result<std::unique_ptr<request>> make(size_t arena_bytes);
  ~request();

  std::pmr::memory_resource* memory() { return memory_.resource(); }
  /// Takes all memory that the request will ever need, so that it can't fail half way.
  result<void> ask(const generate_ask& what, uint32_t vocab);

  /// Before submit. `changed` follows each change that `events` shows, the last one, too.
  void watch(std::shared_ptr<request_watcher> by) { watcher_ = std::move(by); }
  /// Changes with every published token and every end.
  uint32_t events() const { return events_.load(std::memory_order_acquire); }
  /// Sleeps until events() differs from `seen`.
  void wait(uint32_t seen) const { events_.wait(seen, std::memory_order_acquire); }
  /// All choices ended and every page and scratch of every rank is wiped; the engine is done
  /// with this request.
  bool gone() const { return events() & gone_bit; }

  std::span<const uint32_t> prompt() const { return body_->prompt; }
  uint32_t choices() const { return choices_; }
  const choice_state& choice(uint32_t i) const { return body_->choices[i]; }
  std::span<const float> prompt_logprobs() const { return body_->prompt_logprobs; }
  std::span<const token_logprob> prompt_top() const { return body_->prompt_top; }
  const sampling& how() const { return body_->how; }
  uint32_t max_tokens() const { return max_tokens_; }
  bool wants_prompt_logprobs() const { return wants_prompt_logprobs_; }
  /// Token at a position of a choice: of the prompt, then of its answer.
  uint32_t token_at(uint32_t choice, uint32_t position) const;

  /// Only when it is gone.
  const request_times& times() const { return times_; }

  /// The engine's name for it; 0: not submitted.
  uint64_t id() const { return id_; }
  void set_id(uint64_t id) { id_ = id; }

  /// Wipes and gives back the arena. Only before the engine got the request or when it is gone.
  arena_report forget();

 private:
  friend class step_loop;
  static constexpr uint32_t gone_bit = 1u << 31;

  /// Lives in the arena and ends with it: its destructor never runs.
  struct body {
    explicit body(std::pmr::memory_resource* m)
        : prompt(m), stop_ids(m), before_min(m), bias(m), prompt_logprobs(m), prompt_top(m) {}
    std::pmr::vector<uint32_t> prompt, stop_ids;
    std::pmr::vector<uint64_t> before_min;  // a bit for each id that ends nothing, if needed
    std::pmr::vector<logit_bias> bias;
    std::pmr::vector<float> prompt_logprobs;
    std::pmr::vector<token_logprob> prompt_top;
    sampling how;
    choice_state* choices = nullptr;
    grammar_run* form = nullptr;
  };

  void constrain(const answer_constraint& form, uint32_t vocab);
  result<void> hold_stops_back(uint32_t vocab);
  explicit request(arena memory) : memory_(std::move(memory)) {}
  void publish(uint32_t change);

  arena memory_;
  body* body_ = nullptr;
  uint64_t id_ = 0;
  uint32_t max_tokens_ = 0, min_tokens_ = 0, choices_ = 0;
  bool wants_prompt_logprobs_ = false;
  request_times times_;
  bool telling_ = false;  // the step loop has yet to publish a change
  std::atomic<uint32_t> events_{0};
  std::shared_ptr<request_watcher> watcher_;
};

}  // namespace lethe
