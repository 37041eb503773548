// What drawing a token costs on one core, in its processor's time per row and per set of features,
// and its share of a decode step of a model of 1B in Q8_0. The step's time is a lower limit, its
// weights' bytes over the read bandwidth of this run, so the share is an upper one. First each
// set's draws are compared with those of a plain sampler that sorts the whole vocabulary.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <random>
#include <thread>

#include "runtime/batch/counter_rng.hpp"
#include "runtime/batch/sampler.hpp"

namespace lethe {
namespace {

using steady = std::chrono::steady_clock;
constexpr size_t step_bytes = 1'313'000'000;  // of Llama-3.2-1B's shape in Q8_0
constexpr uint32_t different_rows = 16, draws_compared = 40;

double seconds_since(steady::time_point begin) {
  return std::chrono::duration<double>(steady::now() - begin).count();
}

struct flags {
  uint32_t vocab = 128'256, threads = 2;
  double seconds = 0.3, step_ms = 0;
  float peak = 9;
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
      : counts(std::pmr::get_default_resource()),
        scratch(vocab, std::pmr::get_default_resource()),
        mask((vocab + 63) / 64) {
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

  uint32_t draw(const feature_set& f, uint32_t position) {
    top.resize(f.how.logprobs);
    const auto* allowed = f.form ? mask.data() : nullptr;
    return sample(rows[position % different_rows], f.how, counts, 0, position, scratch, top,
                  allowed)
        .id;
  }

  std::vector<std::vector<float>> rows;
  token_counts counts;
  sampler_scratch scratch;
  std::vector<uint64_t> mask;
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
void compare(drawing& d, const feature_set& f) {
  uint32_t other = 0;
  for (uint32_t i = 0; i < draws_compared; ++i) other += d.draw(f, i) != plain_draw(d, f, i);
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

double us_per_row(drawing& d, const feature_set& f, double seconds) {
  uint32_t rows = 0;
  double begin = thread_seconds();
  do d.draw(f, rows++);
  while (thread_seconds() - begin < seconds || rows < 20);
  return 1e6 * (thread_seconds() - begin) / rows;
}

uint64_t sum_of(std::span<const uint64_t> part) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= part.size(); i += 8)
    for (size_t j = 0; j < 8; ++j) sums[j] += part[i + j];
  return sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
}

/// The best of five readings of a part each.
double read_bytes_per_second(uint32_t threads) {
  std::vector<uint64_t> memory((size_t{256} << 20) / 8, 1);
  std::atomic<uint64_t> all = 0;
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    auto begin = steady::now();
    std::vector<std::jthread> readers;
    for (uint32_t t = 0; t < threads; ++t)
      readers.emplace_back([&, t] {
        size_t first = memory.size() * t / threads, end = memory.size() * (t + 1) / threads;
        all += sum_of(std::span(memory).subspan(first, end - first));
      });
    readers.clear();
    best = std::max(best, double(memory.size() * 8) / seconds_since(begin));
  }
  if (all == 0) throw std::runtime_error("nothing was read");
  return best;
}

void run(const flags& f) {
  double step_us = 1e3 * f.step_ms;
  if (step_us == 0) step_us = 1e6 * double(step_bytes) / read_bytes_per_second(f.threads);
  fmt::print(stderr, "a step of 1B takes {} {:.1f} ms\n", f.step_ms > 0 ? "" : "at least",
             step_us / 1e3);
  auto bias = some_biases(f.vocab);
  drawing d(f.vocab, f.peak);
  for (const auto& set : feature_sets(bias)) {
    compare(d, set);
    double us = us_per_row(d, set, f.seconds);
    for (uint32_t rows : {1, 8, 16}) {
      double share = rows * us / step_us;
      fmt::print(stderr, "{:14} {:2} rows {:9.1f} us a row {:7.2f} % of the step\n", set.name, rows,
                 us, 100 * share);
      fmt::print(
          "{{\"what\":\"sampling\",\"features\":\"{}\",\"vocab\":{},\"rows\":{},"
          "\"us_per_row\":{:.2f},\"step_ms\":{:.3f},\"share_of_step\":{:.5f}}}\n",
          set.name, f.vocab, rows, us, step_us / 1e3, share);
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
  app.add_option("--threads", f.threads, "that read a step's weights")
      ->capture_default_str()
      ->check(CLI::Range(1u, 256u));
  app.add_option("--seconds", f.seconds, "of each measurement, at least")->capture_default_str();
  app.add_option("--step-ms", f.step_ms, "a step's time; 0: from the bandwidth, measured here");
  app.add_option("--peak", f.peak, "by how much the likeliest logits stand out; 5: a flat row")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  lethe::run(f);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "sampling_bench: {}\n", e.what());
  return 1;
}
