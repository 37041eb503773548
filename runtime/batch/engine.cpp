#include "runtime/batch/engine.hpp"

#include <algorithm>
#include <thread>

#include "kernels/pairs_row.hpp"
#include "runtime/batch/step_loop.hpp"

namespace lethe {

namespace {

class threaded_engine final : public engine {
 public:
  threaded_engine(const engine_config& config, const planner_config& plan,
                  std::unique_ptr<step_loop> loop)
      : config_(config),
        plan_(plan),
        loop_(std::move(loop)),
        thread_([l = loop_.get()] { l->run(); }) {}

  ~threaded_engine() override {
    loop_->box.put({.kind = letter::what::shutdown});
    thread_.join();
  }

  result<void> fits(const request& r) const override { return check_ask(plan_, ask_of(r, 0)); }

  result<void> submit(request& r) override {
    if (auto alive = health(); !alive) return alive.why();
    if (auto ok = fits(r); !ok) return ok.why();
    uint64_t id = next_id_.fetch_add(1);
    if (loop_->outstanding.fetch_add(1) >= config_.requests_max()) {
      loop_->outstanding.fetch_sub(1);
      return fail("{} requests wait or run already; try again later", config_.requests_max());
    }
    r.set_id(id);
    loop_->box.put({.kind = letter::what::submit, .id = id, .from = &r, .at_ns = loop_->now()});
    return {};
  }

  void stop(request& r, uint32_t choice) override {
    loop_->box.put({.kind = letter::what::stop, .id = r.id(), .choice = choice});
  }
  void cancel(request& r) override { loop_->box.put({.kind = letter::what::cancel, .id = r.id()}); }
  engine_numbers numbers() const override { return loop_->board.numbers(); }
  const engine_config& config() const override { return config_; }
  const grid& ranks() const override { return dynamic_cast<const grid&>(loop_->ranks()); }
  bytes_view step_bytes() const override { return loop_->buffers().bytes(); }
  result<void> health() const override {
    auto steps = loop_->board.health();
    return steps ? loop_->ranks().health() : steps;
  }

 private:
  engine_config config_;
  planner_config plan_;
  std::unique_ptr<step_loop> loop_;
  std::atomic<uint64_t> next_id_{1};
  std::thread thread_;
};

result<void> check_config(const engine_config& c, const model_shape& shape) {
  if (c.page_tokens > limits::page_tokens_max)
    return fail("--page-size {}: supported: 1 to {}", c.page_tokens, limits::page_tokens_max);
  if (c.chunk_tokens == 0) return fail("--chunk 0: at least 1");
  if (c.step_tokens == 0 || c.step_tokens > limits::step_tokens_max)
    return fail("--step-tokens {}: supported: 1 to {}", c.step_tokens, limits::step_tokens_max);
  if (c.running == 0 || c.running > limits::running_max)
    return fail("running sequences {}: supported: 1 to {}", c.running, limits::running_max);
  if (c.context > shape.context_max)
    return fail("--context {}: the model's is {}", c.context, shape.context_max);
  if (c.row && c.row->round && !runs_here(*c.row))
    return fail("engines.arithmetic: there are no {} here; say \"exact\"", instructions_of(*c.row));
  if (c.threads > 1024) return fail("--threads {}: at most 1024", c.threads);
  return check_cut(shape, c.ranks);
}

engine_config with_defaults(engine_config c, const model_shape& shape) {
  uint32_t ranks = c.ranks.tensor * c.ranks.pipeline;
  if (!c.row) c.row = &best_cpu_row();
  if (c.threads == 0) c.threads = std::max(1u, std::thread::hardware_concurrency() / ranks);
  c.page_tokens = c.page_size();
  if (c.context == 0) c.context = shape.context_max;
  return c;
}

/// Bytes that a page takes on the rank where it is largest.
size_t largest_page(const engine_config& c, const model_shape& shape) {
  size_t most = 0;
  for (uint32_t stage = 0; stage < c.ranks.pipeline; ++stage)
    for (uint32_t rank = 0; rank < c.ranks.tensor; ++rank)
      most = std::max(
          most, kv_page_bytes(shape, part_for(shape, c.ranks, stage, rank), c.kv, c.page_tokens));
  return most;
}

/// Pages that --kv-memory pays for; without it a whole context, and as much again for others
/// while that is little.
result<uint32_t> pages_of(const engine_config& c, const model_shape& shape) {
  constexpr size_t easily = size_t{256} << 20;
  size_t page = largest_page(c, shape);
  uint64_t context = pages_for(c.context, c.page_tokens);
  uint64_t pages = c.kv_bytes ? c.kv_bytes / page : std::max<uint64_t>(context, easily / page);
  if (pages == 0) return fail("--kv-memory: one page takes {} bytes", page);
  return uint32_t(std::min<uint64_t>(pages, UINT32_MAX / 2));
}

result<std::unique_ptr<step_ranks>> threads_for(const model_weights& weights,
                                                const grid_config& g) {
  auto ranks = grid::start(weights, g);
  if (!ranks) return ranks.why();
  return std::unique_ptr<step_ranks>(*std::move(ranks));
}

}  // namespace

result<grid_config> engine::ranks_for(const model_shape& shape, const engine_config& asked) {
  if (auto ok = check_config(asked, shape); !ok) return ok.why();
  engine_config c = with_defaults(asked, shape);
  auto pages = pages_of(c, shape);
  if (!pages) return pages.why();
  return grid_config{.ranks = c.ranks,
                     .row = c.row,
                     .threads = c.threads,
                     .kv = c.kv,
                     .page_tokens = c.page_tokens,
                     .pages = *pages,
                     .step_tokens = c.step_tokens,
                     .logit_rows = std::max(c.running, 64u),
                     .timed = c.watch != nullptr};
}

result<std::unique_ptr<engine>> engine::start(const model_weights& weights,
                                              const engine_config& asked,
                                              const ranks_maker& make_ranks) {
  auto wanted = ranks_for(weights.shape, asked);
  if (!wanted) return wanted.why();
  const grid_config& g = *wanted;
  engine_config c = with_defaults(asked, weights.shape);
  auto ranks = make_ranks ? make_ranks(g) : threads_for(weights, g);
  if (!ranks) return ranks.why();
  const uint32_t depth = c.ranks.pipeline;  // a step in each stage
  planner_config plan{.pages = g.pages,
                      .page_tokens = g.page_tokens,
                      .step_tokens = g.step_tokens,
                      .chunk_max = c.chunk_tokens,
                      .logit_rows = g.logit_rows,
                      .depth = depth,
                      .running_max = c.running,
                      .queue_max = c.requests_max(),
                      .context_max = c.context,
                      .kept_pages = c.keeps_prefixes ? g.pages / 2 : 0,
                      .guess_rows = c.looks_ahead ? lookahead::most + 1 : 0};
  auto planner = make_planner(plan);
  if (!planner) return planner.why();
  auto buffers = step_buffers::make(depth, g.step_tokens, g.logit_rows, weights.shape.vocab,
                                    std::min((*ranks)->idle(), drawers_max));
  if (!buffers) return buffers.why();
  auto loop = std::make_unique<step_loop>(*std::move(planner), *std::move(ranks),
                                          *std::move(buffers), weights.shape.vocab);
  loop->watch = c.watch;
  return std::unique_ptr<engine>(new threaded_engine(c, plan, std::move(loop)));
}

}  // namespace lethe
