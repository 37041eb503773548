#include <algorithm>
#include <cmath>
#include <cstring>

#include "parallel/stage.hpp"

namespace lethe {

bool stage::attention(walk& w, uint32_t layer) {
  const attention_weights& l = weights_.layers[layer].attention;
  norm(w, l.norm, forms_for({&l.q, &l.k, &l.v}));
  project(w, l);
  place(w, layer);
  bool final = part_.last() && layer + 1 == part_.layers.end;
  // Behind the last layer's keys and values only rows that become logits matter.
  if (final) narrow(w);
  if (w.rows == 0) return true;

  float* out = room_for(w, l.o, b_.attended);
  attend(w, layer, final ? last_queries_ : queries_, out);
  if (x_forms forms = forms_for({&l.o}); along_k(l.o) && forms.any()) {
    range blocks = share(w, w.rows * (q_cols_ / 32));
    make_forms(w, forms, out, q_cols_, size_t{blocks.begin} * 32, size_t{blocks.end} * 32);
    meet(w, times_.o);
  }
  return join(w, l.o, l.o_bias, out, times_.o);
}

void stage::project(walk& w, const attention_weights& l) {
  uint32_t d = shape_.head_dim;
  range q{part_.heads.begin * d, part_.heads.end * d};
  range kv{part_.kv_heads.begin * d, part_.kv_heads.end * d};
  range all{0, segments};
  product products[] = {{&l.q, q, all, l.q_bias, b_.q, q_cols_},
                        {&l.k, kv, all, l.k_bias, b_.k, kv_cols_},
                        {&l.v, kv, all, l.v_bias, b_.v, kv_cols_}};
  multiply(w, products, input(w.rows, b_.normed, shape_.hidden));
  meet(w, times_.qkv);
}

/// Norms and turns this thread's tokens' queries and keys; keys and values go to their pages.
void stage::place(const walk& w, uint32_t layer) {
  if (w.lead()) next_item_.store(0, std::memory_order_relaxed);
  range mine = share(w, w.rows);
  for (const plan_entry& e : plan_->entries) {
    uint32_t begin = std::max(mine.begin, e.first_token);
    uint32_t end = std::min(mine.end, e.first_token + e.tokens);
    if (begin < end) place_run(layer, e, begin - e.first_token, end - begin);
  }
  meet(w, times_.rope);
}

void stage::place_run(uint32_t layer, const plan_entry& e, uint32_t first, uint32_t tokens) {
  const attention_weights& l = weights_.layers[layer].attention;
  size_t row = e.first_token + first;
  uint32_t d = shape_.head_dim, rotary = shape_.rope.rotary;
  uint32_t heads = part_.heads.size(), kv_heads = part_.kv_heads.size();
  float* q = b_.q + row * q_cols_;
  float* k = b_.k + row * kv_cols_;
  const float* v = b_.v + row * kv_cols_;
  if (l.q_norm) row_.rms_norm(q, d, l.q_norm, q, d, tokens * heads, d, shape_.norm_eps);
  if (l.k_norm) row_.rms_norm(k, d, l.k_norm, k, d, tokens * kv_heads, d, shape_.norm_eps);
  if (rotary != 0) {
    const float* cosines = b_.cosines + row * (rotary / 2);
    const float* sines = b_.sines + row * (rotary / 2);
    row_.rope(q, q_cols_, tokens, heads, d, rotary, cosines, sines);
    row_.rope(k, kv_cols_, tokens, kv_heads, d, rotary, cosines, sines);
  }
  const uint32_t* pages = plan_->pages.data() + e.first_page;
  for (uint32_t h = 0; h < kv_heads; ++h)
    row_.kv_store(pool_.view(layer - part_.layers.begin, h, pages), e.position + first, tokens,
                  k + h * d, v + h * d, kv_cols_);
}

/// The residual rows that become logits, in the order of the logits, in the second buffer.
void stage::narrow(walk& w) {
  float* kept = b_.x[1];
  size_t cols = shape_.hidden;
  range mine = share(w, plan_->logit_rows);
  for (const query_run& run : last_queries_.all)
    for (uint32_t i = 0; i < run.tokens; ++i)
      if (uint32_t r = run.output_row + i; mine.begin <= r && r < mine.end)
        std::memcpy(kept + r * cols, w.x + (run.query_row + i) * cols, cols * sizeof(float));
  w.rows = plan_->logit_rows;
  w.x = kept;
}

void stage::add_run(query_runs& runs, const plan_entry& e, uint32_t tokens,
                    uint32_t output_row) const {
  uint32_t before = e.tokens - tokens;
  runs.all.push_back({&e, e.position + before, tokens, e.first_token + before, output_row, 0});
}

/// Makes items of runs: a head and a block of queries, or, of a decode that others would wait for,
/// a head and a span.
void stage::share_out(query_runs& runs) const {
  const uint32_t heads = part_.kv_heads.size();
  uint64_t keys = 0, fewest = UINT64_MAX, most = 0;
  for (const query_run& run : runs.all) {
    uint64_t of_head = uint64_t{run.tokens} * run.keys();
    keys += of_head * heads;
    fewest = std::min(fewest, of_head), most = std::max(most, of_head);
  }
  bool even = runs.all.size() * heads % team_.size() == 0 && most < fewest + span_keys;
  size_t used = 0;
  for (query_run& run : runs.all) {
    run.first_item = runs.items;
    uint32_t spans = (run.keys() - 1) / span_keys + 1;
    size_t floats = size_t{part_.heads.size()} * spans * span_floats(shape_.head_dim);
    bool long_one = uint64_t{run.keys()} * parts_of_thread * team_.size() > keys;
    if (!even && run.tokens == 1 && spans > 1 && long_one && used + floats <= b_.span_room) {
      run.spans = spans, run.at = b_.spans + used;
      used += floats, runs.has_spans = true;
    }
    runs.items += run.parts() * heads;
  }
}

/// Items are taken as threads get free: their lengths differ as the requests' do.
void stage::attend(const walk& w, uint32_t layer, const query_runs& runs, float* out) {
  uint32_t item;
  while ((item = next_item_.fetch_add(1, std::memory_order_relaxed)) < runs.items) {
    auto after = std::ranges::upper_bound(runs.all, item, {}, &query_run::first_item);
    const query_run& run = *(after - 1);
    attend_item(w, layer, run, item - run.first_item, out);
  }
  meet(w, times_.attention);
  if (runs.has_spans) join_spans(w, layer, runs, out);
}

uint32_t stage::window_of(uint32_t layer) const {
  return layer < shape_.window.size() ? shape_.window[layer] : 0;
}

/// The first span of which a decode sees some.
uint32_t stage::first_span(uint32_t layer, const query_run& run) const {
  uint32_t window = window_of(layer);
  return window == 0 ? 0 : (run.keys() - std::min(run.keys(), window)) / span_keys;
}

/// One block of a run's queries against one kv head, all blocks of a head in turn, so that its keys
/// and values stay in the caches; or one span of a decode.
void stage::attend_item(const walk& w, uint32_t layer, const query_run& run, uint32_t item,
                        float* out) {
  uint32_t group = shape_.heads / shape_.kv_heads, d = shape_.head_dim;
  uint32_t head = item / run.parts(), part = item % run.parts(), kv = part_.kv_heads.begin + head;
  uint32_t first = run.spans ? 0 : part * attention_block;
  range heads{std::max(part_.heads.begin, kv * group), std::min(part_.heads.end, (kv + 1) * group)};
  uint32_t first_head = heads.begin - part_.heads.begin;
  size_t col = size_t{first_head} * d;
  const uint32_t* pages = plan_->pages.data() + run.entry->first_page;
  attention_part all{.kv = pool_.view(layer - part_.layers.begin, head, pages),
                     .q = b_.q + size_t{run.query_row + first} * q_cols_ + col,
                     .q_stride = q_cols_,
                     .out = out + size_t{run.output_row + first} * q_cols_ + col,
                     .out_stride = q_cols_,
                     .position = run.position + first,
                     .tokens = std::min(attention_block, run.tokens - first),
                     .heads = heads.size(),
                     .window = window_of(layer),
                     .scale = 1.0f / std::sqrt(float(d)),
                     .scratch = b_.attention + w.thread * b_.attention_floats};
  if (run.spans) {
    if (part < first_span(layer, run)) return;
    all.span = {run.of(first_head, part, d), size_t{run.spans} * span_floats(d), part};
  }
  row_.attend(all);
}

/// Of decodes whose spans were items; a thread joins some of their heads.
void stage::join_spans(const walk& w, uint32_t layer, const query_runs& runs, float* out) {
  uint32_t d = shape_.head_dim;
  range mine = share(w, part_.heads.size());
  for (const query_run& run : runs.all) {
    if (!run.spans) continue;
    uint32_t first = first_span(layer, run);
    for (uint32_t h = mine.begin; h < mine.end; ++h)
      row_.join_spans(pool_.layout().type, run.of(h, first, d), run.spans - first, d,
                      out + size_t{run.output_row} * q_cols_ + size_t{h} * d);
  }
  meet(w, times_.attention);
}

}  // namespace lethe
