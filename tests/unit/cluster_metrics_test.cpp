#include "runtime/cluster/cluster_metrics.hpp"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <sstream>

namespace lethe {
namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

ended_request one_ended() {
  ended_request r{.served = true,
                  .prompt_tokens = 10,
                  .answer_tokens = 5,
                  .arenas = 2,
                  .bytes_wiped = 4096,
                  .first_token_us = 3'000,
                  .whole_us = 20'000,
                  .queue_us = 400,
                  .prefill_us = 2'000,
                  .decode_us = 8'000};
  r.between_tokens.add(2'000, 4);
  return r;
}

void count(measures& m, const ended_request& r = one_ended()) {
  requests_took took;
  took.add(r);
  m.add(took.of_served);
}

cluster_numbers some_numbers(schema::Profile profile, uint64_t served = 3) {
  cluster_numbers n{.profile = profile, .up_ms = 60'000, .pages = 100, .reserved = 41};
  n.counters.served = served;
  n.counters.prefilled = 10'000;
  n.counters.decoded = 5'000;
  for (uint64_t i = 0; i < served; ++i) count(n.counters.requests);
  return n;
}

/// What Prometheus reads: value by sample, kind by family.
struct scraped {
  std::map<std::string, double> samples;
  std::map<std::string, std::string> kinds;
  std::map<std::string, std::vector<std::pair<double, double>>> buckets;  // (le, count), as listed
};

std::string family_of(const std::string& sample, const scraped& s) {
  std::string name = sample.substr(0, sample.find('{'));
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    std::string shorter = name.substr(0, name.size() - std::min(name.size(), std::strlen(suffix)));
    if (name.ends_with(suffix) && s.kinds.contains(shorter)) return shorter;
  }
  return name;
}

/// Fails the test where the text is not valid.
scraped scrape(const std::string& text) {
  scraped s;
  std::set<std::string> helped;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, name, kind;
    words >> first;
    if (first == "#") {
      words >> second >> name >> kind;
      bool known = second == "HELP" ? helped.insert(name).second
                                    : helped.contains(name) && s.kinds.emplace(name, kind).second;
      EXPECT_TRUE(known) << "twice, or no HELP before: " << line;
      continue;
    }
    double value = 0;
    words >> value;
    EXPECT_TRUE(words) << line;
    EXPECT_TRUE(s.samples.emplace(first, value).second) << "twice: " << line;
    EXPECT_TRUE(s.kinds.contains(family_of(first, s))) << "no TYPE before: " << line;
    if (size_t le = first.find("_bucket{le=\""); le != first.npos) {
      std::string bound = first.substr(le + 12, first.size() - le - 14);
      s.buckets[first.substr(0, le)].emplace_back(
          bound == "+Inf" ? endless : std::strtod(bound.c_str(), nullptr), value);
    }
  }
  EXPECT_TRUE(text.ends_with('\n'));
  return s;
}

/// Whether an engine counts as ready that says this of itself, or about which this is known.
bool counts_as_ready(uint32_t stalled_ms, uint32_t silent_ms, uint32_t heartbeat_ms) {
  capnp::MallocMessageBuilder message;
  auto status = message.initRoot<schema::Status>();
  status.setSilentAfterMs(silent_after_ms(heartbeat_ms));
  auto engine = status.initEngines(1)[0];
  engine.initState().setPhase(schema::Phase::READY);
  engine.initLoad().setStalledMs(stalled_ms);
  engine.getLoad().setSilentMs(silent_ms);
  auto n = numbers_of(status.asReader());
  EXPECT_EQ(n.ready + n.stalled, 1u);
  return n.ready == 1;
}

TEST(Ready, IsAnEngineThatMovesAndIsHeardOf) {
  EXPECT_TRUE(counts_as_ready(9'999, 0, 200));
  EXPECT_FALSE(counts_as_ready(10'000, 0, 200));
  EXPECT_TRUE(counts_as_ready(0, 1'999, 200));
  EXPECT_FALSE(counts_as_ready(0, 2'000, 200)) << "it said that it moves, and then nothing";
  EXPECT_FALSE(counts_as_ready(0, 2'000, 10));
  EXPECT_TRUE(counts_as_ready(0, 9'999, 1'000));
  EXPECT_FALSE(counts_as_ready(0, 10'000, 1'000));
}

TEST(Metrics, AreValidAndHistogramsCumulate) {
  auto n = some_numbers(schema::Profile::LAB);
  auto slow = one_ended();
  slow.whole_us = 90'000'000;  // above all bounds
  count(n.counters.requests, slow);
  auto s = scrape(metrics_text(n));
  size_t histograms = 0;
  for (const auto& [family, kind] : s.kinds) {
    if (kind != "histogram") continue;
    ++histograms;
    const auto& b = s.buckets[family];
    ASSERT_GE(b.size(), 9u) << family;
    EXPECT_EQ(b.back().first, endless);
    EXPECT_EQ(b.back().second, s.samples.at(family + "_count")) << family;
    EXPECT_TRUE(s.samples.contains(family + "_sum"));
    for (size_t i = 1; i < b.size(); ++i) {
      EXPECT_LT(b[i - 1].first, b[i].first) << family;
      EXPECT_LE(b[i - 1].second, b[i].second) << family;
    }
  }
  EXPECT_EQ(histograms, time_measures + length_measures);
  EXPECT_EQ(s.samples.at("lethe:e2e_request_latency_seconds_bucket{le=\"60\"}"), 3);
  EXPECT_EQ(s.samples.at("lethe:e2e_request_latency_seconds_count"), 4);
}

TEST(Metrics, SayWhatWasMeasured) {
  auto s = scrape(metrics_text(some_numbers(schema::Profile::LAB)));
  auto is = [&s](const std::string& sample, double value) {
    ASSERT_TRUE(s.samples.contains(sample)) << sample;
    EXPECT_DOUBLE_EQ(s.samples.at(sample), value) << sample;
  };
  is("lethe:time_to_first_token_seconds_bucket{le=\"0.0025\"}", 0);
  is("lethe:time_to_first_token_seconds_bucket{le=\"0.005\"}", 3);
  is("lethe:time_to_first_token_seconds_sum", 0.009);
  is("lethe:inter_token_latency_seconds_count", 12);
  is("lethe:inter_token_latency_seconds_sum", 0.024);
  is("lethe:request_time_per_output_token_seconds_sum", 0.006);
  is("lethe:e2e_request_latency_seconds_sum", 0.06);
  is("lethe:request_queue_time_seconds_bucket{le=\"0.0005\"}", 3);
  is("lethe:request_prefill_time_seconds_sum", 0.006);
  is("lethe:request_decode_time_seconds_sum", 0.024);
  is("lethe:request_prompt_tokens_bucket{le=\"4\"}", 0);
  is("lethe:request_prompt_tokens_bucket{le=\"16\"}", 3);
  is("lethe:request_generation_tokens_sum", 15);
  is("lethe:request_success_total{finished_reason=\"served\"}", 3);
  is("lethe:kv_cache_usage_perc", 0.41);
}

TEST(Measures, CountOnlyWhatWasServed) {
  auto failed = one_ended();
  failed.served = false;
  requests_took took;
  took.add(failed);
  EXPECT_EQ(took.bytes_wiped, 4096u) << "what was wiped counts in any case";
  for (const auto& h : took.of_served.times) EXPECT_EQ(h, time_histogram{});
  for (const auto& h : took.of_served.lengths) EXPECT_EQ(h, token_histogram{});
}

TEST(Measures, AnAnswerWithoutTokensHasNoTimeOfTheFirst) {
  measures m;
  count(m, {.served = true, .prompt_tokens = 10});
  EXPECT_EQ(m.of(time_measure::first_token), time_histogram{});
  EXPECT_EQ(m.of(length_measure::answer).counts[0], 1u);
  auto one = one_ended();
  one.answer_tokens = 1;
  count(m, one);
  EXPECT_NE(m.of(time_measure::first_token), time_histogram{});
  EXPECT_EQ(m.of(time_measure::per_token), time_histogram{}) << "one token has no time between";
}

TEST(RequestsTook, GoOverTheWireAndAddUp) {
  requests_took one;
  one.add(one_ended());
  capnp::MallocMessageBuilder message;
  one.write(message.initRoot<schema::Took>());
  auto all = requests_took::read(message.getRoot<schema::Took>().asReader());
  all.add(one);
  EXPECT_EQ(all.prompt_tokens, 20u);
  EXPECT_EQ(all.answer_tokens, 10u);
  EXPECT_EQ(all.arenas, 4u);
  EXPECT_EQ(all.bytes_wiped, 8192u);
  EXPECT_EQ(all.of_served.of(time_measure::whole).sum, 40'000u);
}

TEST(RequestsTook, AreToldOfManyTogether) {
  requests_took one;
  one.add(one_ended());
  told_together four(4);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(four.add(one)) << "one too few";
    ASSERT_TRUE(four.add(one));
    EXPECT_EQ(four.take().prompt_tokens, 40u);
  }
  told_together each(1);
  EXPECT_TRUE(each.add(one));
}

TEST(Measures, GoOverTheWireAndBack) {
  auto sent = some_numbers(schema::Profile::LAB).counters.requests;
  capnp::MallocMessageBuilder message;
  sent.write(message.initRoot<schema::Measures>());
  auto came = measures::read(message.getRoot<schema::Measures>().asReader());
  EXPECT_EQ(came.times, sent.times);
  EXPECT_EQ(came.lengths, sent.lengths);
}

TEST(Measures, OfAnotherVersionsBoundsAreLeftOut) {
  capnp::MallocMessageBuilder message;
  auto b = message.initRoot<schema::Measures>();
  b.initTimes(time_measures + 1)[0].initCounts(1).set(0, 7);
  b.initLengths(length_measures)[0].initCounts(2).set(0, 7);
  auto came = measures::read(b.asReader());
  for (const auto& h : came.times) EXPECT_EQ(h, time_histogram{});
  for (const auto& h : came.lengths) EXPECT_EQ(h, token_histogram{});
}

TEST(MetricsGate, ShowsAllAtOnceInTheLab) {
  metrics_gate gate;
  auto shown = gate.shown(some_numbers(schema::Profile::LAB, 1));
  EXPECT_EQ(shown.counters.served, 1u);
  EXPECT_EQ(shown.counters.decoded, 5'000u);
  EXPECT_EQ(shown.reserved, 41u);
}

TEST(MetricsGate, HoldsCountersUntilManyRequestsHaveEndedAndTimeHasPassed) {
  for (auto profile : {schema::Profile::STRICT, schema::Profile::SESSION}) {
    metrics_gate gate;
    constexpr uint64_t least = metrics_gate::requests_least, hold = metrics_gate::hold_ms;
    auto served = [&](uint64_t ended, uint64_t up_ms) {
      auto n = some_numbers(profile, ended);
      n.up_ms = up_ms;
      return gate.shown(n).counters.served;
    };
    EXPECT_EQ(served(least - 1, hold), 0u) << "one too few";
    EXPECT_EQ(served(least, hold - 1), 0u) << "one millisecond too early";
    EXPECT_EQ(served(least, hold), least);
    EXPECT_EQ(served(2 * least - 1, 10 * hold), least);
    EXPECT_EQ(served(2 * least, 2 * hold - 1), least);
    EXPECT_EQ(served(2 * least, 2 * hold), 2 * least);
  }
}

TEST(MetricsGate, KeepsLengthsToItselfOutsideTheLab) {
  metrics_gate gate;
  auto n = some_numbers(schema::Profile::STRICT, 20);
  auto shown = gate.shown(n);
  EXPECT_EQ(shown.counters.prefilled, 8192u);
  EXPECT_EQ(shown.counters.decoded, 4096u);
  EXPECT_EQ(shown.reserved, 50u) << "41 of 100 pages, rounded up to tenths";
  auto s = scrape(metrics_text(shown));
  EXPECT_EQ(s.samples.at("lethe:e2e_request_latency_seconds_count"), 20);
  EXPECT_DOUBLE_EQ(s.samples.at("lethe:e2e_request_latency_seconds_sum"), 20 * 0.025)
      << "as if each were its bucket's bound";
  for (const auto& [family, kind] : s.kinds)
    EXPECT_TRUE(kind != "histogram" || family.find("tokens") == family.npos) << family;
  EXPECT_FALSE(s.kinds.contains("lethe:inter_token_latency_seconds"))
      << "its count is the answers' length";
}

// The attack that the gate is for: two scrapes around one victim.
TEST(MetricsGate, TwoScrapesAroundOneRequestSayNothingOfItButInTheLab) {
  auto differ = [](schema::Profile profile) {
    metrics_gate gate;
    auto n = some_numbers(profile, 20);
    auto before = metrics_text(gate.shown(n));
    auto victim = one_ended();
    victim.prompt_tokens = 700;
    victim.answer_tokens = 300;
    count(n.counters.requests, victim);
    n.counters.served += 1;
    n.counters.decoded += 300;
    n.up_ms += 5;
    n.reserved += 1;
    auto after = gate.shown(n);
    after.up_ms -= 5;
    return before != metrics_text(after);
  };
  EXPECT_TRUE(differ(schema::Profile::LAB)) << "or this test could not fail";
  EXPECT_FALSE(differ(schema::Profile::STRICT));
  EXPECT_FALSE(differ(schema::Profile::SESSION));
}

}  // namespace
}  // namespace lethe
