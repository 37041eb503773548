#include "parallel/rank_step.hpp"

#include <algorithm>
#include <cstring>

#include "parallel/step_stack.hpp"
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
  result<void> report(const step_data& data);
  step_data room_for(const uint32_t* ids, uint32_t rows);

  rank_groups groups_;
  const grid_config config_;
  const uint32_t vocab_;
  const bool carries_;
  plan_bytes bytes_;
  region answers_[2];  // logits and ids; one is on its way while the other is filled
  size_t touched_ = 0;
  uint32_t turn_ = 0;
  step_plan plan_;
  std::unique_ptr<step_rank> own_;
};

result<void> follower::start(const model_weights& weights, bool spin, const rank_maker& make) {
  if (auto same = agree(weights, config_, *groups_.plans); !same) return same;
  size_t row_bytes = vocab_ * sizeof(float) + sizeof(uint32_t);
  for (region& a : answers_) {
    auto memory = region::map(carries_ ? config_.logit_rows * row_bytes : 0, "logits");
    if (!memory) return memory.why();
    a = *std::move(memory);
  }
  auto own = make_rank(weights, config_, groups_, spin, make);
  if (!own) return own.why();
  own_ = *std::move(own);
  return {};
}

follower::~follower() {
  for (region& a : answers_)
    if (a.size() != 0) wipe(a.data(), touched_);
  bytes_.wipe();
}

/// What earlier steps left, once the leader has it.
result<void> follower::forget() {
  if (auto taken = groups_.results->flush(); !taken) return taken;
  for (region& a : answers_)
    if (a.size() != 0) wipe(a.data(), touched_);
  touched_ = 0;
  groups_.wipe();
  return {};
}

/// Ids of so many rows, then the logits.
step_data follower::room_for(const uint32_t* ids, uint32_t rows) {
  if (!carries_) return {.token_ids = ids};
  turn_ ^= 1;
  size_t id_bytes = config_.logit_rows * sizeof(uint32_t);
  touched_ = std::max(touched_, id_bytes + size_t{rows} * vocab_ * sizeof(float));
  std::byte* at = answers_[turn_].data();
  return {.token_ids = ids,
          .logits = reinterpret_cast<float*>(at + id_bytes),
          .drawn = reinterpret_cast<uint32_t*>(at)};
}

result<bool> follower::step() {
  const uint32_t* ids = nullptr;
  if (auto got = share(*groups_.plans, bytes_); !got) return got.why();
  auto more = bytes_.read(plan_, ids);
  if (!more || !*more) return more;
  if (plan_.wipe_scratch)
    if (auto forgot = forget(); !forgot) return forgot.why();
  // More rows than that are refused before they are touched.
  step_data data = room_for(ids, std::min(plan_.logit_rows, config_.logit_rows));
  auto done = own_->execute(plan_, data);
  bytes_.wipe();
  if (done) done = report(data);
  if (!done) return done.why();
  return true;
}

result<void> follower::report(const step_data& data) {
  communicator& results = *groups_.results;
  if (ends_unseen(plan_)) {
    if (auto heard = hear_done(results, config_.ranks); !heard) return heard;
    if (!carries_) return tell_done(results, config_.ranks);
  }
  return carries_ ? tell_answer(results, plan_, data, vocab_) : result<void>();
}

result<void> follower::serve() {
  clean_stack of_steps(step_stack_bytes);
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

namespace {

/// Rows that are told lie at their own places, or moved together: from either to the other.
size_t move_rows(const step_plan& plan, float* logits, uint32_t vocab, bool together) {
  struct stretch {
    size_t own, moved, count;
  };
  std::vector<stretch> all;
  size_t rows = 0;
  for_rows_told(plan, [&](uint32_t first, uint32_t count) {
    all.push_back({first, rows, count});
    rows += count;
  });
  auto move = [logits, vocab](size_t to, size_t from, size_t count) {
    std::memmove(logits + to * vocab, logits + from * vocab, count * vocab * sizeof(float));
  };
  if (together)
    for (const stretch& s : all) move(s.moved, s.own, s.count);
  else
    for (size_t i = all.size(); i-- > 0;) move(all[i].own, all[i].moved, all[i].count);
  return rows;
}

}  // namespace

/// At least one message, also of a step without any rows.
result<void> tell_answer(communicator& results, const step_plan& plan, const step_data& data,
                         uint32_t vocab) {
  std::span<const uint32_t> ids(data.drawn, plan.draws.size());
  if (!ids.empty())
    if (auto said = results.send(std::as_bytes(ids), 0); !said) return said;
  size_t rows = move_rows(plan, data.logits, vocab, true);
  if (rows == 0 && !ids.empty()) return {};
  return results.send(std::as_bytes(std::span<const float>(data.logits, rows * vocab)), 0);
}

result<void> hear_answer(communicator& results, const step_plan& plan, const step_data& data,
                         uint32_t vocab, uint32_t from) {
  std::span<uint32_t> ids(data.drawn, plan.draws.size());
  if (!ids.empty())
    if (auto heard = results.recv(std::as_writable_bytes(ids), from); !heard) return heard;
  size_t rows = plan.logit_rows - plan.draws.size();
  if (rows == 0 && !ids.empty()) return {};
  std::span<float> logits(data.logits, rows * vocab);
  if (auto heard = results.recv(std::as_writable_bytes(logits), from); !heard) return heard;
  move_rows(plan, data.logits, vocab, false);
  return {};
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
