#include "parallel/rank_step.hpp"

#include <algorithm>

#include "runtime/base/wipe.hpp"

namespace lethe {
namespace {

using terms = std::array<uint32_t, 20>;

terms terms_of(const model_shape& s, const grid_config& c) {
  return {s.layers,      s.hidden,  s.heads,        s.kv_heads,       s.head_dim,
          s.ffn,         s.vocab,   s.tied,         s.o_bias,         s.qkv_bias,
          s.mlp_bias,    s.qk_norm, c.ranks.tensor, c.ranks.pipeline, uint32_t(c.kv),
          c.page_tokens, c.pages,   c.step_tokens,  c.logit_rows,     uint32_t(s.family.size())};
}

/// A rank that does not lead.
class follower {
 public:
  follower(rank_groups g, const grid_config& c, uint32_t vocab, plan_bytes b)
      : groups_(std::move(g)),
        config_(c),
        vocab_(vocab),
        carries_(groups_.rank() == logits_from(c.ranks)),
        bytes_(std::move(b)) {}
  ~follower();
  follower(const follower&) = delete;

  result<void> start(const model_weights& weights, bool spin, const rank_maker& make);
  /// False: the leader ended.
  result<bool> step();
  result<void> serve();

 private:
  result<void> forget();
  result<void> report(std::span<const float> rows);
  std::span<float> logits(uint32_t rows);

  rank_groups groups_;
  const grid_config config_;
  const uint32_t vocab_;
  const bool carries_;
  plan_bytes bytes_;
  region logits_[2];  // one is on its way while the other is filled
  size_t touched_ = 0;
  uint32_t turn_ = 0;
  step_plan plan_;
  std::unique_ptr<step_rank> own_;
};

result<void> follower::start(const model_weights& weights, bool spin, const rank_maker& make) {
  if (auto same = agree(weights, config_, *groups_.plans); !same) return same;
  size_t bytes = carries_ ? size_t{config_.logit_rows} * vocab_ * sizeof(float) : 0;
  for (region& l : logits_) {
    auto memory = region::map(bytes, "logits");
    if (!memory) return memory.why();
    l = *std::move(memory);
  }
  auto own = make_rank(weights, config_, groups_, spin, make);
  if (!own) return own.why();
  own_ = *std::move(own);
  return {};
}

follower::~follower() {
  for (region& l : logits_)
    if (l.size() != 0) wipe(l.data(), touched_);
  bytes_.wipe();
}

/// What earlier steps left, once the leader has it.
result<void> follower::forget() {
  if (auto taken = groups_.results->flush(); !taken) return taken;
  for (region& l : logits_)
    if (l.size() != 0) wipe(l.data(), touched_);
  touched_ = 0;
  groups_.wipe();
  return {};
}

std::span<float> follower::logits(uint32_t rows) {
  if (!carries_) return {};
  turn_ ^= 1;
  size_t floats = size_t{rows} * vocab_;
  touched_ = std::max(touched_, floats * sizeof(float));
  return {reinterpret_cast<float*>(logits_[turn_].data()), floats};
}

result<bool> follower::step() {
  const uint32_t* ids = nullptr;
  if (auto got = share(*groups_.plans, bytes_); !got) return got.why();
  auto more = bytes_.read(plan_, ids);
  if (!more || !*more) return more;
  if (plan_.wipe_scratch)
    if (auto forgot = forget(); !forgot) return forgot.why();
  // More rows than that are refused before they are touched.
  std::span<float> rows = logits(std::min(plan_.logit_rows, config_.logit_rows));
  auto done = own_->execute(plan_, {.token_ids = ids, .logits = rows.data()});
  bytes_.wipe();
  if (done) done = report(rows);
  if (!done) return done.why();
  return true;
}

result<void> follower::report(std::span<const float> rows) {
  communicator& results = *groups_.results;
  if (ends_unseen(plan_)) {
    if (auto heard = hear_done(results, config_.ranks); !heard) return heard;
    if (!carries_) return tell_done(results, config_.ranks);
  }
  return carries_ ? results.send(std::as_bytes(rows), 0) : result<void>();
}

result<void> follower::serve() {
  while (true) {
    auto more = step();
    if (more && *more) continue;
    if (more) return {};
    groups_.abort();
    own_->abort();
    return more.why();
  }
}

}  // namespace

result<void> agree(const model_weights& weights, const grid_config& config, communicator& plans) {
  if (auto fits = check_cut(weights.shape, config.ranks); !fits) return fits;
  terms mine = terms_of(weights.shape, config), leaders = mine;
  if (auto told = plans.broadcast(std::as_writable_bytes(std::span(leaders)), 0); !told)
    return told;
  if (mine == leaders) return {};
  plans.abort();
  return fail("ranks: rank {} has another model or config than the leader; give all the same",
              plans.rank());
}

result<std::unique_ptr<step_rank>> make_rank(const model_weights& weights, const grid_config& c,
                                             rank_groups& groups, bool spin,
                                             const rank_maker& make) {
  uint32_t stage = groups.rank() / c.ranks.tensor, tensor_rank = groups.rank() % c.ranks.tensor;
  auto part = part_for(weights.shape, c.ranks, stage, tensor_rank);
  return make(weights, rank_config(c, part, spin), groups);
}

result<std::unique_ptr<step_rank>> make_shard(const model_weights& weights,
                                              const shard_config& config, rank_groups& groups) {
  auto made = shard::make(weights, config, *groups.tensor, *groups.world);
  if (!made) return made.why();
  return std::unique_ptr<step_rank>(*std::move(made));
}

result<void> share(communicator& plans, plan_bytes& plan) {
  if (auto said = plans.broadcast(plan.first(), 0); !said) return said;
  auto rest = plan.rest();
  if (!rest) return rest.why();
  return rest->empty() ? result<void>() : plans.broadcast(*rest, 0);
}

result<void> hear_done(communicator& results, const cut& c) {
  uint32_t rank = results.rank();
  // The leader's own part is no news to anybody: what it does comes before what it says.
  if (rank > c.tensor)
    if (auto before = results.recv({}, rank - c.tensor); !before) return before;
  if (rank != logits_from(c)) return {};
  for (uint32_t r = rank + 1; r < rank + c.tensor; ++r)
    if (auto beside = results.recv({}, r); !beside) return beside;
  return {};
}

result<void> tell_done(communicator& results, const cut& c) {
  uint32_t rank = results.rank(), carrier = logits_from(c);
  return results.send({}, rank < carrier ? rank + c.tensor : carrier);
}

void rank_groups::abort() {
  for (communicator* c : {tensor.get(), world.get(), ends.get(), plans.get(), results.get()})
    if (c != nullptr) c->abort();
}

void rank_groups::wipe() {
  for (communicator* c : {tensor.get(), world.get(), plans.get(), results.get()})
    if (c != nullptr) c->wipe();
}

result<void> serve_rank(const model_weights& weights, const grid_config& config, rank_groups groups,
                        bool spin, const rank_maker& make) {
  check(groups.rank() != 0);
  auto bytes = plan_bytes::make();
  if (!bytes) return bytes.why();
  follower f(std::move(groups), config, weights.shape.vocab, *std::move(bytes));
  if (auto started = f.start(weights, spin, make); !started) return started;
  return f.serve();
}

}  // namespace lethe
