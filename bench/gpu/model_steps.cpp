#include "bench/gpu/model_steps.hpp"

#include <algorithm>
#include <chrono>

namespace lethe::bench {
namespace {

uint32_t largest(const std::vector<uint32_t>& of) { return *std::ranges::max_element(of); }

/// A prompt is a step, and so are contexts as far as they fit.
uint32_t step_tokens(const run_sizes& s) {
  return std::max({largest(s.prompts), s.context, largest(s.streams)});
}

}  // namespace

shard_config config_for(const model_shape& shape, const run_sizes& sizes) {
  return {.part = part_for(shape, {}, 0, 0),
          .kv = kv_type::bf16,
          .page_tokens = sizes.page_tokens,
          .pages = std::max(sizes.stream_pages() * largest(sizes.streams),
                            sizes.pages_for(largest(sizes.prompts))),
          .step_tokens = step_tokens(sizes),
          .logit_rows = largest(sizes.streams)};
}

uint32_t model_steps::context_token(uint32_t stream, uint32_t position) const {
  return (stream * 40503u + position * 2654435761u) % vocab_;
}

/// Of `tables` sequences; page i of stream s is s + i * tables.
void model_steps::add(uint32_t stream, uint32_t position, std::span<const uint32_t> ids,
                      bool answered, uint32_t tables) {
  auto tokens = uint32_t(ids.size());
  uint32_t pages = sizes_.pages_for(position + tokens);
  plan_.entries.push_back({.sequence = stream,
                           .position = position,
                           .tokens = tokens,
                           .first_token = plan_.tokens,
                           .first_page = uint32_t(plan_.pages.size()),
                           .page_count = pages,
                           .logit_rows = answered,
                           .first_logit_row = plan_.logit_rows});
  for (uint32_t i = 0; i < pages; ++i) plan_.pages.push_back(stream + i * tables);
  if (answered) plan_.draws.push_back({.row = plan_.logit_rows, .temperature = 0});
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  plan_.tokens += tokens;
  plan_.logit_rows += answered;
}

void model_steps::add_context(uint32_t stream, uint32_t begin, uint32_t end, bool answered,
                              uint32_t tables) {
  std::vector<uint32_t> ids;
  for (uint32_t at = begin; at < end; ++at) ids.push_back(context_token(stream, at));
  add(stream, begin, ids, answered, tables);
}

void model_steps::clear() {
  plan_ = {.id = ++steps_};
  ids_.clear();
}

/// Seconds.
result<double> model_steps::run() {
  drawn_.assign(plan_.draws.size(), UINT32_MAX);
  float none = 0;  // all rows are drawn from
  const step_data data{
      .token_ids = ids_.data(), .logits = &none, .drawn = drawn_.data(), .caller_waits = true};
  auto begin = std::chrono::steady_clock::now();
  if (auto done = shard_.execute(plan_, data); !done) return done.why();
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return took.count();
}

result<timed_steps> model_steps::prefill(uint32_t tokens) {
  timed_steps all;
  for (uint32_t i = 0; i <= sizes_.prefills; ++i) {
    clear();
    add_context(0, 0, tokens, true, 1);
    auto took = run();
    if (!took) return took.why();
    if (i != 0) all.seconds.push_back(*took);
    all.answers.push_back(drawn_);
    if (drawn_ != all.answers[0])
      return fail("a prompt of {} tokens is answered otherwise the next time", tokens);
  }
  return all;
}

/// Each in one piece, as many together as a step takes.
result<void> model_steps::fill(uint32_t streams) {
  const uint32_t together = std::max(1u, step_tokens(sizes_) / sizes_.context);
  for (uint32_t first = 0; first < streams; first += together) {
    clear();
    for (uint32_t s = first; s < std::min(streams, first + together); ++s)
      add_context(s, 0, sizes_.context, false, largest(sizes_.streams));
    if (auto took = run(); !took) return took.why();
  }
  return {};
}

result<timed_steps> model_steps::decode(uint32_t streams) {
  timed_steps all{.seconds = {}, .answers = std::vector<std::vector<uint32_t>>(streams)};
  for (uint32_t i = 0; i < sizes_.decodes_in_all(); ++i) {
    clear();
    for (uint32_t s = 0; s < streams; ++s) {
      uint32_t next = i == 0 ? context_token(s, sizes_.context) : all.answers[s].back();
      add(s, sizes_.context + i, {&next, 1}, true, largest(sizes_.streams));
    }
    auto took = run();
    if (!took) return took.why();
    if (i >= sizes_.warm_ups) all.seconds.push_back(*took);
    for (uint32_t s = 0; s < streams; ++s) all.answers[s].push_back(drawn_[s]);
  }
  return all;
}

result<void> model_steps::wipe() {
  clear();
  for (uint32_t id = 0; id < pages_; ++id) plan_.wipes.push_back(id);
  plan_.wipe_scratch = true;
  if (auto took = run(); !took) return took.why();
  return {};
}

}  // namespace lethe::bench
