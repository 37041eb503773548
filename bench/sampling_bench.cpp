// What drawing tokens costs, per set of features: a row in its processor's time, and a batch in
// time, its rows shared by threads as an engine's are. First each set's draws are compared with
// those of a plain sampler that sorts the whole vocabulary.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <random>

#include "bench/spread.hpp"
#include "parallel/team.hpp"
#include "runtime/batch/counter_rng.hpp"
#include "runtime/batch/sampler.hpp"

namespace lethe {
namespace {

using steady = std::chrono::steady_clock;
constexpr uint32_t different_rows = 16, draws_compared = 40;

double seconds_since(steady::time_point begin) {
  return std::chrono::duration<double>(steady::now() - begin).count();
}

struct flags {
  uint32_t vocab = 128'256, threads = 2;
  double seconds = 0.3;
  float peak = 9;
  std::string only;
};

struct feature_set {
  const char* name;
  sampling how;
  bool form = false;
};

std::vector<logit_bias> some_biases(uint32_t vocab) {
  std::vector<logit_bias> all;
  for (uint32_t i = 0; i < 100; ++i) all.push_back({(i * 7919 + 5) % vocab, i % 2 ? 2.f : -2.f});
  return all;
}

std::vector<feature_set> feature_sets(std::span<const logit_bias> bias) {
  const sampling all{.temperature = 0.8f,
                     .top_k = 200,
                     .typical_p = 0.99f,
                     .top_p = 0.95f,
                     .min_p = 0.02f,
                     .repetition_penalty = 1.1f,
                     .presence_penalty = 0.5f,
                     .frequency_penalty = 0.5f,
                     .bias = bias,
                     .want_logprob = true,
                     .logprobs = 20};
  sampling all_but_top_k = all;
  all_but_top_k.top_k = 0;
  return {{"greedy", {.temperature = 0}},
          {"temperature", {.temperature = 0.8f}},
          {"top_k", {.top_k = 40}},
          {"top_p", {.top_p = 0.95f}},
          {"min_p", {.min_p = 0.05f}},
          {"typical_p", {.typical_p = 0.95f}},
          {"penalties",
           {.repetition_penalty = 1.1f, .presence_penalty = 0.5f, .frequency_penalty = 0.5f}},
          {"logit_bias", {.bias = bias}},
          {"logprobs", {.want_logprob = true, .logprobs = 20}},
          {"form", {}, true},
          {"all", all, true},
          {"all_but_top_k", all_but_top_k, true}};
}

/// Rows of logits, thirty of which stand out by `peak` and more (9: all others have a few percent
/// of the probability, as a model that knows what it says; 5: nearly all), the ids that went
/// before, and a form's mask.
struct drawing {
  drawing(uint32_t vocab, float peak)
      : counts(std::pmr::get_default_resource()), mask((vocab + 63) / 64) {
    std::mt19937 random(1);
    std::normal_distribution<float> spread(0, 2.2f);
    for (uint32_t r = 0; r < different_rows; ++r) {
      auto& row = rows.emplace_back(vocab);
      for (float& v : row) v = spread(random);
      for (uint32_t i = 0; i < 30; ++i) row[random() % vocab] += peak + float(random() % 800) / 100;
    }
    for (uint32_t i = 0; i < 512; ++i) counts.add_output(random() % vocab);
    for (auto& bits : mask) bits = uint64_t{random()} << 32 | random();
  }

  std::vector<std::vector<float>> rows;
  token_counts counts;
  std::vector<uint64_t> mask;
};

struct drawer {
  explicit drawer(const drawing& of)
      : d(of), scratch(uint32_t(of.rows[0].size()), std::pmr::get_default_resource()) {}

  uint32_t draw(const feature_set& f, uint32_t position) {
    top.resize(f.how.logprobs);
    const auto* allowed = f.form ? d.mask.data() : nullptr;
    return sample(d.rows[position % different_rows], f.how, d.counts, 0, position, scratch, top,
                  allowed)
        .id;
  }

  const drawing& d;
  sampler_scratch scratch;
  std::vector<token_logprob> top;
};

struct weighed {
  double p, logit;
  uint32_t id;
};

/// Cuts the list where `mass` is reached, and makes the rest a distribution again.
void keep_mass(std::vector<weighed>& all, double mass) {
  double sum = 0;
  size_t kept = 0;
  while (kept < all.size() && sum < mass) sum += all[kept++].p;
  all.resize(kept);
  for (auto& w : all) w.p /= sum;
}

void keep_typical(std::vector<weighed>& all, double mass) {
  double entropy = 0;
  for (auto& w : all) entropy -= w.p > 0 ? w.p * std::log(w.p) : 0;
  auto distance = [entropy](const weighed& w) { return std::fabs(-std::log(w.p) - entropy); };
  std::ranges::stable_sort(all, {}, distance);
  keep_mass(all, mass);
  std::ranges::stable_sort(all, std::greater<>(), &weighed::logit);
}

std::vector<weighed> plain_logits(const drawing& d, const feature_set& f, uint32_t position) {
  const auto& row = d.rows[position % different_rows];
  std::vector<weighed> all;
  for (uint32_t id = 0; id < row.size(); ++id) all.push_back({0, row[id], id});
  d.counts.for_each([&](const token_counts::entry& e) {
    double& logit = all[e.id].logit;
    logit = logit > 0 ? logit / f.how.repetition_penalty : logit * f.how.repetition_penalty;
    logit -= f.how.presence_penalty + f.how.frequency_penalty * double(e.output);
  });
  for (const auto& b : f.how.bias) all[b.id].logit += b.bias;
  if (f.form) std::erase_if(all, [&](auto& w) { return !(d.mask[w.id / 64] >> w.id % 64 & 1); });
  std::ranges::stable_sort(all, std::greater<>(), &weighed::logit);
  return all;
}

uint32_t plain_draw(const drawing& d, const feature_set& f, uint32_t position) {
  auto all = plain_logits(d, f, position);
  if (f.how.temperature == 0) return all.front().id;
  double most = all.front().logit, sum = 0;
  for (auto& w : all) sum += w.p = std::exp((w.logit - most) / f.how.temperature);
  for (auto& w : all) w.p /= sum;
  if (f.how.top_k > 0 && f.how.top_k < all.size()) all.resize(f.how.top_k), keep_mass(all, 2);
  if (f.how.typical_p < 1) keep_typical(all, f.how.typical_p);
  if (f.how.top_p < 1) keep_mass(all, f.how.top_p);
  if (f.how.min_p > 0) {
    double least = f.how.min_p * all.front().p;
    std::erase_if(all, [least](auto& w) { return w.p < least; });
    keep_mass(all, 2);
  }
  std::ranges::sort(all, {}, &weighed::id);
  double goal = uniform_at(f.how.seed, 0, position), passed = 0;
  for (auto& w : all)
    if ((passed += w.p) > goal) return w.id;
  return all.back().id;
}

/// Rounding may move a draw that falls between two tokens, rarely.
void compare(drawer& by, const feature_set& f) {
  uint32_t other = 0;
  for (uint32_t i = 0; i < draws_compared; ++i) other += by.draw(f, i) != plain_draw(by.d, f, i);
  if (other > 1)
    throw std::runtime_error(fmt::format("{}: {} of {} draws are not those of the plain sampler",
                                         f.name, other, draws_compared));
}

/// Of this thread's processor: what others do beside it does not count.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

double us_per_row(drawer& by, const feature_set& f, double seconds) {
  uint32_t rows = 0;
  double begin = thread_seconds();
  do by.draw(f, rows++);
  while (thread_seconds() - begin < seconds || rows < 20);
  return 1e6 * (thread_seconds() - begin) / rows;
}

/// Whoever is free takes the next row. The median of batches.
double us_per_batch(team& crew, std::span<drawer> by, const feature_set& f, uint32_t rows,
                    double seconds) {
  std::vector<double> took;
  for (auto begin = steady::now(); seconds_since(begin) < seconds || took.size() < 20;) {
    std::atomic<uint32_t> next = 0;
    auto batch = steady::now();
    crew.run([&](uint32_t thread) {
      for (uint32_t row; (row = next.fetch_add(1)) < rows;) by[thread].draw(f, row);
    });
    took.push_back(1e6 * seconds_since(batch));
  }
  return bench::spread_of(std::move(took)).median;
}

void run(const flags& f) {
  auto crew = team::start(f.threads, true);
  if (!crew) throw std::runtime_error(crew.why().text);
  auto bias = some_biases(f.vocab);
  drawing d(f.vocab, f.peak);
  std::vector<drawer> by;
  for (uint32_t i = 0; i < f.threads; ++i) by.emplace_back(d);
  for (const auto& set : feature_sets(bias)) {
    if (!f.only.empty() && f.only != set.name) continue;
    compare(by[0], set);
    double us = us_per_row(by[0], set, f.seconds);
    for (uint32_t rows : {1, 8, 16}) {
      double batch = rows == 1 ? us : us_per_batch(**crew, by, set, rows, f.seconds);
      fmt::print(stderr, "{:14} {:2} rows {:9.1f} us a row {:9.1f} us by {} threads\n", set.name,
                 rows, us, batch, f.threads);
      fmt::print(
          "{{\"what\":\"sampling\",\"features\":\"{}\",\"vocab\":{},\"rows\":{},"
          "\"threads\":{},\"us_per_row\":{:.2f},\"us_per_batch\":{:.2f}}}\n",
          set.name, f.vocab, rows, f.threads, us, batch);
    }
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) try {
  CLI::App app{"What drawing tokens costs; JSON lines on stdout", "sampling_bench"};
  lethe::flags f;
  app.add_option("--vocab", f.vocab)->capture_default_str()->check(CLI::Range(1000u, 1u << 20));
  app.add_option("--threads", f.threads, "that share a batch's rows")
      ->capture_default_str()
      ->check(CLI::Range(1u, 256u));
  app.add_option("--seconds", f.seconds, "of each measurement, at least")->capture_default_str();
  app.add_option("--peak", f.peak, "by how much the likeliest logits stand out; 5: a flat row")
      ->capture_default_str();
  std::vector<std::string> names;
  for (const auto& set : lethe::feature_sets({})) names.push_back(set.name);
  app.add_option("--only", f.only, "these features alone")->check(CLI::IsMember(names));
  CLI11_PARSE(app, argc, argv);
  lethe::run(f);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "sampling_bench: {}\n", e.what());
  return 1;
}
