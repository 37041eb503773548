#include "runtime/audit/fingerprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace lethe::audit {

namespace {

constexpr size_t curve_points = 24;

/// Of sorted values.
double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[size_t(share * double(sorted.size() - 1))];
}

void add_summary(std::vector<double> values, feature_row& row) {
  const double n = std::max<double>(1, double(values.size()));
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double v : values) squares += (v - mean) * (v - mean);
  std::ranges::sort(values);
  row.insert(row.end(), {mean, std::sqrt(squares / n)});
  for (double share : {0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0}) row.push_back(quantile(values, share));
}

/// At places from the first value to the last, in between by straight lines.
void add_curve(const std::vector<double>& values, feature_row& row) {
  for (size_t i = 0; i < curve_points; ++i) {
    if (values.empty()) {
      row.push_back(0);
      continue;
    }
    const double at = double(i) / double(curve_points - 1) * double(values.size() - 1);
    const size_t below = size_t(at), above = std::min(below + 1, values.size() - 1);
    row.push_back(std::lerp(values[below], values[above], at - double(below)));
  }
}

/// The first few as they are: where they begin alike and one is longer, curves shift.
void add_first(const std::vector<double>& values, feature_row& row) {
  for (size_t i = 0; i < curve_points / 2; ++i) row.push_back(i < values.size() ? values[i] : -1);
}

}  // namespace

uint64_t bytes_of(const capture& c) {
  return std::accumulate(c.begin(), c.end(), uint64_t{0},
                         [](uint64_t sum, const piece_seen& p) { return sum + p.bytes; });
}

feature_row features_of(const capture& c) {
  std::vector<double> sizes, gaps, so_far, times;
  for (const auto& p : c) {
    if (!times.empty()) gaps.push_back(p.at_ms - times.back());
    times.push_back(p.at_ms);
    sizes.push_back(p.bytes);
    so_far.push_back((so_far.empty() ? 0 : so_far.back()) + p.bytes);
  }
  feature_row row{double(c.size()), double(bytes_of(c)), times.empty() ? 0 : times.front(),
                  times.empty() ? 0 : times.back() - times.front()};
  add_summary(gaps, row);
  add_summary(sizes, row);
  for (const auto* values : {&times, &gaps, &sizes, &so_far}) add_curve(*values, row);
  add_first(gaps, row);
  add_first(sizes, row);
  return row;
}

namespace {

rows_by_label rows_of(const captures& by_prompt) {
  rows_by_label rows(by_prompt.size());
  for (size_t p = 0; p < by_prompt.size(); ++p)
    for (const auto& c : by_prompt[p]) rows[p].push_back(features_of(c));
  return rows;
}

/// How often the class of an answer is that of each prompt.
using class_counts = std::map<uint64_t, std::vector<uint64_t>>;

uint64_t class_of(const capture& c, uint32_t piece_bytes) {
  const uint64_t bytes = bytes_of(c);
  if (piece_bytes == 0 || bytes == 0) return bytes;
  return uint64_t(std::max(0.0, std::round(std::log2(double(bytes) / piece_bytes))));
}

class_counts classes_of(const captures& by_prompt, uint32_t piece_bytes) {
  class_counts counts;
  for (size_t p = 0; p < by_prompt.size(); ++p)
    for (const auto& c : by_prompt[p]) {
      auto& of_class = counts[class_of(c, piece_bytes)];
      of_class.resize(by_prompt.size());
      ++of_class[p];
    }
  return counts;
}

/// Who is told the class can do no better than name the prompt that most often has it.
double share_of_best_guesser(const class_counts& counts) {
  uint64_t right = 0, all = 0;
  for (const auto& [name, of_class] : counts) {
    right += std::ranges::max(of_class);
    all += std::accumulate(of_class.begin(), of_class.end(), uint64_t{0});
  }
  return all ? double(right) / double(all) : 1;
}

/// Prompts whose answers are always of the class that has these counts.
rows_by_label always_of(const std::vector<uint64_t>& of_class, const captures& by_prompt) {
  captures those;
  for (size_t p = 0; p < by_prompt.size(); ++p)
    if (of_class[p] > 0 && of_class[p] == by_prompt[p].size()) those.push_back(by_prompt[p]);
  return rows_of(those);
}

void look_within(const class_counts& counts, const captures& by_prompt, uint64_t seed,
                 fingerprint& out) {
  std::vector<double> chances;
  for (const auto& [name, of_class] : counts) {
    auto rows = always_of(of_class, by_prompt);
    if (rows.size() < 2) continue;
    auto told = tell_apart(rows, seed);
    out.within.hits += told.made.hits;
    out.within.of += told.made.of;
    chances.insert(chances.end(), told.made.of, told.by_chance);
  }
  if (chances.empty()) return;
  out.within_by_chance =
      std::accumulate(chances.begin(), chances.end(), 0.0) / double(chances.size());
  out.within_chance = successes_at_least(out.within.hits, chances);
}

}  // namespace

fingerprint fingerprint_of(const captures& by_prompt, uint64_t seed, uint32_t piece_bytes) {
  fingerprint out;
  const auto counts = classes_of(by_prompt, piece_bytes);
  out.classes = counts.size();
  out.allowed = share_of_best_guesser(counts);
  out.all = tell_apart(rows_of(by_prompt), seed);
  out.all_chance = binomial_at_least(out.all.made, out.allowed);
  look_within(counts, by_prompt, seed, out);
  return out;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string text_of(const told_apart& t, size_t labels, double alpha) {
  const auto r = exact_interval(t.made, alpha);
  return fmt::format("{} of {} prompts told apart (between {} and {}; chance {}), by {}",
                     percent(t.made.share()), labels, percent(r.low), percent(r.high),
                     percent(t.by_chance), t.by);
}

}  // namespace lethe::audit
