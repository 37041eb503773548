// The table of what may run, against what TAXONOMY.md names and what DESIGN.md promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/policy/policy_text.hpp"
#include "tests/places.hpp"

namespace lethe::policy {
namespace {

using schema::Profile;
using names = std::set<std::string>;

// Written by hand from TAXONOMY.md and DESIGN.md, not from the table: what must never run.
const names strict_refuses = {"preemption",         "batch-variant-kernels",
                              "prefix-cache",       "session-capsule",
                              "server-sessions",    "disk-kv",
                              "kv-borrowing",       "kv-pool",
                              "kv-copies",          "retrieval-speculation",
                              "shared-draft-store", "token-recycling",
                              "priority",           "length-prediction",
                              "length-classes",     "content-order",
                              "plain-streaming",    "server-placement",
                              "two-candidates",     "content-routing",
                              "role-flip",          "kv-pull",
                              "live-migration",     "cloud-choice",
                              "closed-kernels",     "traffic-profiling",
                              "exact-metrics",      "full-traces",
                              "content-logging",    "stored-responses",
                              "plain-api",          "request-labels",
                              "clear-links",        "runtime-plugins",
                              "remote-control",     "request-lookahead"};
// What a client may hold the key of, or declare.
const names session_takes_more = {"session-capsule", "two-candidates"};
// What this build has; nothing else may be taken by any profile.
const names built = {
    "continuous-batching", "chunked-prefill", "whole-admission",           "overlap-scheduling",
    "load-rejection",      "paged-kv",        "prefix-sharing-in-request", "kv-quantization",
    "paced-answers",       "equal-chunks",    "model-parallelism",         "load-scaling",
    "weight-quantization", "fused-kernels",   "tensor-arithmetic"};
const names built_for_the_lab = {
    "prefix-cache", "plain-streaming", "server-placement", "two-candidates", "exact-metrics",
    "full-traces",  "plain-api",       "request-labels",   "clear-links",    "request-lookahead"};

names refused_by(std::span<const optimization> rows, Profile p) {
  names found;
  for (const auto& o : rows)
    if (o.in(p) == verdict::refused) found.emplace(o.name);
  return found;
}

names taken_by(std::span<const optimization> rows, Profile p) {
  names found;
  for (const auto& o : rows)
    if (o.in(p) == verdict::allowed || o.in(p) == verdict::guarded) found.emplace(o.name);
  return found;
}

names without(names all, const names& some) {
  for (const auto& n : some) all.erase(n);
  return all;
}

names with(names all, const names& more) {
  all.insert(more.begin(), more.end());
  return all;
}

TEST(PolicyTable, RefusesWhatBreaksAPromiseAndTakesWhatIsBuilt) {
  EXPECT_EQ(refused_by(table(), Profile::STRICT), strict_refuses);
  EXPECT_EQ(refused_by(table(), Profile::SESSION), without(strict_refuses, session_takes_more));
  EXPECT_EQ(refused_by(table(), Profile::LAB), names());
  EXPECT_EQ(taken_by(table(), Profile::STRICT), built);
  EXPECT_EQ(taken_by(table(), Profile::SESSION), with(built, {"two-candidates"}));
  EXPECT_EQ(taken_by(table(), Profile::LAB), with(built, built_for_the_lab));
}

// The control: a table that lets one of them through is another one.
TEST(PolicyTable, ARefusedRowThatWereAllowedWouldBeSeen) {
  for (const auto& name : strict_refuses) {
    std::vector<optimization> rows(table().begin(), table().end());
    auto row = std::ranges::find(rows, name, &optimization::name);
    ASSERT_NE(row, rows.end()) << name;
    for (auto let : {verdict::allowed, verdict::guarded, verdict::not_built}) {
      row->strict = let;
      EXPECT_NE(refused_by(rows, Profile::STRICT), strict_refuses) << name;
    }
  }
}

TEST(PolicyTable, HasWhatEverySystemOfTheTaxonomyDoes) {
  const names systems = {"Orca",
                         "FlexGen",
                         "FastServe",
                         "SpecInfer",
                         "vLLM",
                         "REST",
                         "Splitwise",
                         "SGLang",
                         "Lookahead",
                         "Sarathi",
                         "Infinite-LLM",
                         "DistServe",
                         "Medusa",
                         "TetriInfer",
                         "AttentionStore",
                         "LoongServe",
                         "Andes",
                         "Llumnix",
                         "Preble",
                         "MInference",
                         "TR",
                         "LightLLM",
                         "FlexFlow",
                         "Mooncake",
                         "DeepSpeed-FastGen",
                         "TensorRT-LLM",
                         "TGI",
                         "Llama (Intel)",
                         "LMDeploy",
                         "fastllm",
                         "rtp-llm",
                         "MindIE",
                         "Prompt Cache",
                         "Layer-wise transmission",
                         "SkyPilot",
                         "MLC LLM",
                         "vAttention",
                         "MemServe",
                         "CacheGen",
                         "DynamoLLM",
                         "Shared Attention",
                         "SnapKV",
                         "ChunkAttention",
                         "PPL.LLM",
                         "H100 CC study"};
  EXPECT_EQ(systems.size(), 45u);
  names named;
  for (const auto& o : table()) {
    std::istringstream list{std::string(o.systems)};
    for (std::string one; std::getline(list >> std::ws, one, ',');) named.insert(one);
  }
  EXPECT_EQ(named, systems);
}

TEST(PolicyTable, EachNameAndEachOtherNameMeansOneRow) {
  names seen;
  for (const auto& o : table()) {
    std::istringstream also(std::string(o.name) + " " + std::string(o.also));
    for (std::string one; also >> one;) {
      EXPECT_TRUE(seen.insert(one).second) << one;
      EXPECT_EQ(find(one), &o) << one;
      EXPECT_EQ(one.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), one.npos) << one;
    }
  }
  EXPECT_EQ(find(""), nullptr);
  EXPECT_EQ(find("prefix"), nullptr);
  EXPECT_EQ(find("radix-cache automatic-prefix-caching"), nullptr);
}

TEST(PolicyCheck, SaysWhichPromiseWouldBreakAndWhatToUse) {
  for (const auto& o : table())
    for (auto p : {Profile::STRICT, Profile::SESSION, Profile::LAB}) {
      auto said = check(p, o.name);
      bool taken = o.in(p) == verdict::allowed || o.in(p) == verdict::guarded;
      ASSERT_EQ(bool(said), taken) << o.name;
      EXPECT_EQ(takes(p, o.name), taken);
      if (taken) continue;
      const auto& why = said.why().text;
      EXPECT_TRUE(why.ends_with("use instead: " + std::string(o.instead))) << why;
      bool breaks = why.find(promises_text(o.breaks)) != why.npos && o.breaks != 0;
      bool is_refused = o.in(p) == verdict::refused;
      EXPECT_EQ(why.find("it would break") != why.npos && breaks, is_refused) << why;
      EXPECT_EQ(why.find("is not built") != why.npos, !is_refused) << why;
    }
  EXPECT_EQ(promises_text(stateless | untargeted | verifiable),
            "stateless computation (S), non-targetability (T) and verifiable transparency (V)");
}

TEST(PolicyCheck, KnowsWhatWasLikelyMeant) {
  EXPECT_EQ(check(Profile::LAB, "prefix-cach").why().text,
            "there is no optimization \"prefix-cach\"; did you mean prefix-cache?");
  EXPECT_EQ(check(Profile::LAB, "warp-drive").why().text,
            "there is no optimization \"warp-drive\"; `lethe config policy` lists them");
}

/// A profile of a later version is held to what strict is.
TEST(PolicyCheck, AProfileThatIsNotKnownIsStrict) {
  EXPECT_EQ(refused_by(table(), Profile(7)), strict_refuses);
}

TEST(PolicyPage, IsWhatTheTableSays) {
  std::ifstream file(std::string(places::source) + "/docs/policy.md", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(text == table_markdown())
      << "write it anew: lethe config policy --markdown > docs/policy.md";
}

TEST(PolicyPage, HasARowOfTenCellsForEach) {
  std::istringstream lines(table_markdown());
  size_t rows = 0;
  for (std::string one; std::getline(lines, one);)
    if (one.starts_with("| ")) {
      EXPECT_EQ(std::ranges::count(one, '|'), 11) << one;
      ++rows;
    }
  EXPECT_EQ(rows, table().size() + 2);
}

}  // namespace
}  // namespace lethe::policy
