#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "parallel/step_plan.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/result.hpp"
#include "runtime/batch/kept_prefixes.hpp"

namespace lethe {

/// What a replica's steps may hold. Pages, step_tokens and logit_rows are those of its grid.
struct planner_config {
  uint32_t pages = 0;
  uint32_t page_tokens = 16;
  uint32_t step_tokens = 512;
  uint32_t chunk_max = 512;  // prompt tokens of one sequence in one step
  uint32_t logit_rows = 64;
  uint32_t depth = 1;                          // steps in flight
  uint32_t running_max = limits::running_max;  // sequences
  uint32_t queue_max = 1024;                   // requests
  uint32_t context_max = limits::context_max;  // prompt + max_tokens of a sequence
  uint32_t kept_pages = 0;                     // of prompts that ended: lab only
  uint32_t guess_rows = 0;  // decodes and guesses in a step that has guesses: lab only
};

/// Prompt tokens beside decodes: the share that prompts have of all who wait, or so many;
inline constexpr uint32_t prompt_tokens_fair = 128;
/// but no more than a step of this long has time for,
inline constexpr uint64_t step_ns_beside_decodes = 333'000'000;
/// or, up to so many, one of this long: a step reads all weights, however few tokens they are for;
inline constexpr uint32_t prompt_tokens_apt = 48;
inline constexpr uint64_t step_ns_of_apt = 500'000'000;
/// but so many in any case.
inline constexpr uint32_t prompt_tokens_least = 32;

/// What a request wants, without content.
struct request_ask {
  uint64_t request = 0;
  uint32_t prompt_tokens = 0;                // >= 1
  uint32_t max_tokens = 0;                   // >= 1
  uint32_t choices = 1;                      // n
  bool prompt_logits = false;                // a row for every prompt token
  std::vector<prefix_key> prefix_keys = {};  // where prompts are kept
};

/// waiting: a choice whose request's first choice still prefills the prompt.
enum class sequence_phase : uint8_t { waiting, prefilling, decoding, ended };

/// One choice of an admitted request. `plan_entry::sequence` is its index in the state.
struct sequence {
  uint64_t request = 0;
  uint32_t choice = 0;
  sequence_phase phase = sequence_phase::waiting;
  bool in_flight = false;         // an entry of a plan that is not complete
  bool ran = false;               // was ever in a plan
  uint32_t position = 0;          // tokens stored
  uint32_t end = 0;               // tokens it may store
  std::vector<uint32_t> pages;    // in order of position: the whole reservation
  std::optional<page_copy> fork;  // to ride with its first decode; holds a reference on `from`
  uint32_t guesses = 0;           // tokens that its next decode tries behind its own
};

/// A request between enqueue and take_gone.
struct planned_request {
  request_ask ask;
  std::vector<uint32_t> sequences;  // by choice; empty while queued
  uint32_t living = 0;              // choices that hold pages
};

/// What a completed step brings for one living choice.
struct step_result {
  uint64_t request = 0;
  uint32_t choice = 0;
  uint32_t position = 0;  // of the token that `first_logit_row` belongs to
  uint32_t first_logit_row = 0;
  uint32_t logit_rows = 0;
  uint32_t samples = 0;  // the last so many rows give its next tokens: more than one beside guesses
};

struct planner_state {
  planner_config config;
  page_pool pool;
  kept_prefixes kept;
  std::deque<uint64_t> queue;
  std::unordered_map<uint64_t, planned_request> requests;
  std::vector<sequence> sequences;
  std::vector<uint32_t> free_sequences;  // indices of `sequences` that stand for none
  std::deque<uint32_t> prefilling;       // in order of admission
  std::deque<uint32_t> ready;            // decodes not in flight, longest waiting first
  uint32_t running = 0;                  // sequences admitted and not released
  uint32_t decodes_in_flight = 0;
  std::vector<uint32_t> wipes;  // retiring pages that no plan carries yet
  std::vector<uint64_t> ends;   // requests that ended since the last plan
  bool scratch_dirty = false;   // a sequence ended since the last plan
  struct flight {
    uint64_t plan;
    std::vector<uint64_t> ends;
  };
  std::deque<flight> flights;  // plans not complete, oldest first
  uint64_t token_ns = 0;       // a step's time for each of its tokens; 0: not known yet
  std::vector<uint64_t> gone;
  uint64_t next_plan = 1;
};

struct planner_load {
  uint32_t pages_total = 0, pages_reserved = 0, pages_holding = 0, pages_retiring = 0;
  uint32_t pages_free = 0;
  uint64_t tokens_stored = 0;  // a shared prompt counts once
  uint32_t queued = 0;         // requests
  uint32_t running = 0;        // sequences
};

result<planner_state> make_planner(const planner_config& config);

/// Pages that the ask holds from admission to its end. The last token of a choice is never stored.
/// Full pages of the prompt are shared by all choices.
uint64_t pages_reserved_for(const request_ask& ask, uint32_t page_tokens);

/// Whether the ask could ever run here; if not, why, and what to change.
result<void> check_ask(const planner_config& config, const request_ask& ask);

/// Puts a request at the end of the queue; refuses what could never run, a known id, a full queue.
result<void> enqueue(planner_state& state, const request_ask& ask);

/// Prompt tokens that a step may hold beside `taken` tokens of decodes. All decoding choices wait
/// for them, all prompts that come after them gain by them.
uint32_t prompt_tokens_beside(const planner_state& state, uint32_t taken);

/// A plan took so long from when it was handed over. The last counts a quarter, and at most as
/// twice what was expected: a machine that stood still for a minute isn't that slow. Forgotten when
/// nobody runs.
void learn_pace(planner_state& state, const step_plan& plan, uint64_t ns);

/// The next decode of a choice may try `count` guesses behind its own token, where a step has room.
/// Whoever plans without this decodes token by token.
void guess(planner_state& state, uint64_t request, uint32_t choice, uint32_t count);

/// The next guess of a choice whose decode is complete was right: what is stored of it stays.
void accept_guess(planner_state& state, uint64_t request, uint32_t choice);

/// The next step, or nothing: `depth` steps are in flight, or there is nothing to do. Admits from
/// the queue's head, then takes decodes, then prompt chunks; wipes of earlier ends ride along.
std::optional<step_plan> plan_step(planner_state& state);

/// Who an entry of a plan in flight belongs to (content comes from there: prompt tokens
/// [position, position + tokens) while prefilling, the last sampled token when decoding, and
/// guesses behind it).
const sequence& sequence_of(const planner_state& state, const plan_entry& entry);

/// The oldest plan in flight was executed. Returns the logit rows for choices that still live;
/// with several choices the prompt's last row is returned once for each. Whoever samples must
/// `finish` the choice after its max_tokens-th token, before the next plan_step.
std::vector<step_result> complete(planner_state& state, const step_plan& plan);

/// A choice has its last token (stop or length).
void finish(planner_state& state, uint64_t request, uint32_t choice);

/// Ends all choices, whatever they do. False: no such request.
bool cancel(planner_state& state, uint64_t request);

/// Requests of which no page and no scratch holds anything any more, once each.
std::vector<uint64_t> take_gone(planner_state& state);

planner_load load_of(const planner_state& state);

}  // namespace lethe
