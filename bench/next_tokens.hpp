#pragma once

// How far a model's next-token distributions are from those of a reference, position by position.

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "tests/unit/parallel_grid_run.hpp"

namespace lethe::accuracy {

/// A logit row's softmax, as logarithms.
inline std::vector<double> log_softmax(std::span<const float> logits) {
  double most = *std::max_element(logits.begin(), logits.end()), sum = 0;
  for (float v : logits) sum += std::exp(double(v) - most);
  std::vector<double> out;
  for (float v : logits) out.push_back(double(v) - most - std::log(sum));
  return out;
}

/// What was found over some positions.
class agreement {
 public:
  /// A choice that the reference finds less likely than its own by no more nats than this is told
  /// apart from the others, but no less wrong.
  static constexpr double near_tie_nats = 1e-3;

  void add(const std::vector<double>& want, std::span<const float> logits) {
    auto got = log_softmax(logits);
    double divergence = 0;
    for (size_t i = 0; i < want.size(); ++i) divergence += std::exp(want[i]) * (want[i] - got[i]);
    kl_.push_back(divergence);
    auto first = [](const std::vector<double>& row) {
      return size_t(std::max_element(row.begin(), row.end()) - row.begin());
    };
    size_t best = first(want), chosen = first(got);
    same_ += best == chosen;
    near_ += best != chosen && want[best] - want[chosen] <= near_tie_nats;
  }

  size_t positions() const { return kl_.size(); }
  size_t same() const { return same_; }
  size_t near_ties() const { return near_; }
  double top1() const { return double(same_) / double(positions()); }
  double kl() const {
    double sum = 0;
    for (double v : kl_) sum += v;
    return sum / double(positions());
  }
  double kl_p99() const {
    auto sorted = kl_;
    auto at = sorted.begin() + ptrdiff_t((sorted.size() - 1) * 99 / 100);
    std::nth_element(sorted.begin(), at, sorted.end());
    return *at;
  }

 private:
  std::vector<double> kl_;
  size_t same_ = 0, near_ = 0;
};

/// A text's ids, and at which of its positions the next token is judged: [first, end) each.
struct judged_text {
  std::vector<uint32_t> ids;
  std::vector<std::pair<size_t, size_t>> at;
};

/// Some weights, run in some way.
struct candidate_run {
  std::string name;
  const model_weights* weights;
  kv_type kv = kv_type::f32;
  const cpu_row* row = &best_cpu_row();
  agreement judged, everywhere;
};

/// Some texts at a time: the logits of a whole corpus would be gigabytes.
inline constexpr size_t texts_at_once = 8;

inline void judge(const testing::logit_rows& want, const testing::logit_rows& got,
                  const judged_text& text, candidate_run& into) {
  for (size_t position = 0; position < want.size(); ++position) {
    auto reference = log_softmax(want[position]);
    into.everywhere.add(reference, got[position]);
    for (auto [first, end] : text.at)
      if (first <= position && position < end) into.judged.add(reference, got[position]);
  }
}

/// Each candidate's agreement with the reference; `told` is called with how many texts are done.
template <class Told>
void compare(const model_weights& reference, std::span<const judged_text> texts,
             std::vector<candidate_run>& candidates, Told&& told) {
  for (size_t done = 0; done < texts.size(); done += texts_at_once) {
    auto some = texts.subspan(done, std::min(texts_at_once, texts.size() - done));
    std::vector<testing::prompt> prompts;
    for (const auto& t : some) prompts.push_back(t.ids);
    auto want = testing::run(reference, prompts, {});
    for (auto& c : candidates) {
      auto got = testing::run(*c.weights, prompts, {.kv = c.kv, .row = c.row});
      for (size_t i = 0; i < some.size(); ++i) judge(want[i], got[i], some[i], c);
    }
    told(done + some.size());
  }
}

}  // namespace lethe::accuracy
