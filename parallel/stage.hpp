#pragma once

#include <atomic>
#include <initializer_list>
#include <vector>

#include "parallel/kv_pool.hpp"
#include "parallel/multiply.hpp"
#include "parallel/scratch.hpp"
#include "parallel/shard.hpp"
#include "parallel/team.hpp"

namespace lethe {

/// The layers of one rank, run over the tokens of a step. Every thread of the team runs `run`;
/// each does its share of an operation, then they meet. The lead alone talks to other ranks.
class stage {
 public:
  stage(const model_weights& weights, const shard_config& config, communicator& tensor,
        communicator& world, const buffers& b, kv_pool& pool, team& threads);

  /// By the lead, before the threads run a plan and after.
  void prepare(const step_plan& plan, const step_data& data);
  result<void> outcome() const { return outcome_; }
  void run(uint32_t thread);

  /// Ranks of one stage and process take each other's panels.
  void help(stage& other) { beside_.push_back(&other.panels_); }

  step_times& times() { return times_; }
  stopwatch& watch() { return watch_; }

 private:
  /// One thread's way through a step.
  struct walk {
    uint32_t thread;
    uint32_t rows;  // of the residual stream: the step's tokens, in the end its logit rows
    float* x;
    // What o or down left in `joined` and is not added to the residual stream yet.
    const matrix* pending = nullptr;
    const float* pending_bias = nullptr;
    panel_queue::place multiplied = {};
    bool lead() const { return thread == 0; }
  };
  /// An entry's queries in one layer, and where they lie.
  struct query_run {
    const plan_entry* entry;
    uint32_t position, tokens, query_row, output_row, first_item;
    // A decode that several threads sum: its spans are items, and leave floats from here on.
    uint32_t spans = 0;
    float* at = nullptr;

    uint32_t keys() const { return position + tokens; }
    uint32_t parts() const { return spans ? spans : attention_blocks(tokens); }
    float* of(uint32_t head, uint32_t span, uint32_t head_dim) const {
      return at + (size_t{head} * spans + span) * span_floats(head_dim);
    }
  };
  /// What products want of their input besides floats.
  struct x_forms {
    bool units = false, rounded = false;
    bool any() const { return units || rounded; }
  };
  struct query_runs {
    std::vector<query_run> all;
    uint32_t items = 0;
    bool has_spans = false;
    void clear() { all.clear(), items = 0, has_spans = false; }
  };

  // stage.cpp
  bool enter(walk& w);
  bool feed_forward(walk& w, const mlp_weights& l);
  bool leave(walk& w);
  void norm(walk& w, const float* gain, x_forms forms);

  void turn_tables(const walk& w);
  template <class Call>
  bool talk(const walk& w, Call&& call);

  // stage_attention.cpp
  bool attention(walk& w, uint32_t layer);
  void project(walk& w, const attention_weights& l);
  void place(const walk& w, uint32_t layer);
  void place_run(uint32_t layer, const plan_entry& e, uint32_t first, uint32_t tokens);
  void attend(const walk& w, uint32_t layer, const query_runs& runs, float* out);
  void attend_item(const walk& w, uint32_t layer, const query_run& run, uint32_t item, float* out);
  void narrow(walk& w);
  void join_spans(const walk& w, uint32_t layer, const query_runs& runs, float* out);
  void add_run(query_runs& runs, const plan_entry& e, uint32_t tokens, uint32_t output_row) const;
  void share_out(query_runs& runs) const;
  uint32_t first_span(uint32_t layer, const query_run& run) const;
  uint32_t window_of(uint32_t layer) const;

  // stage_join.cpp
  bool along_k(const matrix& m) const { return cuts_along_k(m.type, m.cols, part_.tensor_size); }
  range cols_of(const matrix& m, uint32_t rank) const;
  float* room_for(const walk& w, const matrix& m, float* own) const;
  bool join(walk& w, const matrix& m, const float* bias, const float* own, uint64_t& time);
  bool join_gathered(walk& w, const matrix& m, uint64_t& time);
  template <class RangeOf>
  bool gather(const walk& w, float* all, RangeOf&& range_of);
  void unpack(const walk& w, const matrix& m);
  void add_pending(const walk& w, uint32_t row);

  // stage_head.cpp
  bool head(walk& w);
  result<void> carry_logits(uint32_t rows);
  void place_logits(const walk& w);

  range share(const walk& w, uint32_t n) const { return part_of(n, w.thread, team_.size()); }
  void multiply(walk& w, std::span<const product> products, const activations& x);
  activations input(uint32_t rows, const float* x, size_t stride) const;
  x_forms forms_for(std::initializer_list<const matrix*> weights) const;
  /// Of elements [begin, end) of the walk's rows, `cols` wide.
  void make_forms(const walk& w, x_forms forms, const float* x, uint32_t cols, size_t begin,
                  size_t end);
  /// Ends an operation: all meet, and its time is taken.
  void meet(const walk& w, uint64_t& time) {
    team_.meet();
    if (w.lead()) watch_.lap(time);
  }

  const model_weights& weights_;
  const model_shape& shape_;
  const shard_config config_;
  const shard_part& part_;
  const cpu_row& row_;
  communicator& tensor_;
  communicator& world_;
  const buffers b_;
  kv_pool& pool_;
  team& team_;
  const std::vector<double> frequencies_;
  const double magnitude_;
  const uint32_t q_cols_, kv_cols_;

  const step_plan* plan_ = nullptr;
  const step_data* data_ = nullptr;
  query_runs queries_, last_queries_;
  uint32_t slot_ = 0;
  std::atomic<uint32_t> next_item_ = 0;
  panel_queue panels_;
  std::vector<panel_queue*> beside_;
  std::vector<communicator::extent> extents_;
  std::atomic<bool> failed_ = false;
  result<void> outcome_;
  stopwatch watch_;
  step_times times_;
};

template <class Call>
bool stage::talk(const walk& w, Call&& call) {
  if (w.lead()) {
    outcome_ = call();
    if (!outcome_) failed_.store(true);
  }
  // There is always another meeting before the next talk, so nobody can miss which one failed.
  meet(w, times_.comm);
  return !failed_.load();
}

}  // namespace lethe
