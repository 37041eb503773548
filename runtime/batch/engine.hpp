#pragma once

#include <functional>
#include <memory>

#include "parallel/grid.hpp"
#include "parallel/kv_pool.hpp"
#include "runtime/batch/request.hpp"

namespace lethe {

/// Told of each step by the step loop's thread when no rank touches it any more. For benches:
/// with one the ranks sum where their time goes.
class step_watcher {
 public:
  virtual ~step_watcher() = default;
  virtual void stepped(const step_plan& plan, uint64_t submitted_ns, uint64_t done_ns) = 0;
};

struct engine_config {
  cut ranks;
  const cpu_row* row = nullptr;  // null: the best that runs here
  uint32_t threads = 0;          // per rank; 0: the cores, shared by the ranks
  kv_type kv = kv_type::f32;
  uint32_t page_tokens = 0;     // 0: what is usual for `kv`
  uint64_t kv_bytes = 0;        // per rank; 0: enough for `context` tokens
  uint32_t context = 0;         // longest prompt + answer; 0: the model's
  uint32_t step_tokens = 512;   // token budget of a step
  uint32_t chunk_tokens = 256;  // most prompt tokens of one request in a step
  uint32_t running = 64;        // sequences at once
  uint32_t queue = 1024;        // requests that may wait beyond `running`
  uint32_t default_max_tokens = 256;
  bool keeps_prefixes = false;  // up to half of the pages, for other requests: lab only
  bool looks_ahead = false;     // guesses from a request's own words; its times tell of them
  step_watcher* watch = nullptr;

  /// Tokens of a page.
  uint32_t page_size() const { return page_tokens ? page_tokens : usual_page_tokens(kv); }
  /// Requests that it takes at once: as many as may run, and those that wait.
  uint32_t requests_max() const { return running + queue; }
};

/// How full the engine is; no number depends on what anyone wrote.
struct engine_numbers {
  uint32_t pages = 0, pages_reserved = 0, pages_written = 0;
  uint32_t pages_reserved_peak = 0, pages_written_at_peak = 0;
  uint32_t running = 0, queued = 0;
  uint64_t steps = 0, tokens_prefilled = 0, tokens_decoded = 0;
  uint64_t pages_wiped = 0;
  uint64_t guesses = 0, guesses_right = 0;
};

/// Makes what executes steps, of the form that an engine wants; by default threads of this process.
using ranks_maker = std::function<result<std::unique_ptr<step_ranks>>(const grid_config&)>;

/// Serves requests on ranks: one thread plans, hands steps to them, samples.
class engine {
 public:
  static result<std::unique_ptr<engine>> start(const model_weights& weights, const engine_config& c,
                                               const ranks_maker& make_ranks = {});
  /// The ranks that such an engine wants: the same in each of its processes.
  static result<grid_config> ranks_for(const model_shape& shape, const engine_config& c);
  /// Cancels what is left, waits until everything is wiped.
  virtual ~engine() = default;

  /// Whether a request that was asked could ever run here; if not, why, and what to change.
  virtual result<void> fits(const request& r) const = 0;
  /// Queues a request that was asked. It must live until it is gone. An error means that the
  /// engine never saw it.
  virtual result<void> submit(request& r) = 0;
  /// Ends a choice as stopped (a stop string was found), or the whole request as cancelled.
  virtual void stop(request& r, uint32_t choice) = 0;
  virtual void cancel(request& r) = 0;

  virtual engine_numbers numbers() const = 0;
  virtual const engine_config& config() const = 0;  // with defaults filled in
  /// For tests and the audit: the ranks, if they are threads, and the host's token ids, logits and
  /// samplers' scratch.
  virtual const grid& ranks() const = 0;
  virtual bytes_view step_bytes() const = 0;
  /// Why the engine is dead, or nothing: then every request ends as failed.
  virtual result<void> health() const = 0;
};

}  // namespace lethe
