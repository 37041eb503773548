#include <gtest/gtest.h>

#include <random>

#include "runtime/base/check.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/batch/stop_matcher.hpp"

namespace lethe {
namespace {

using texts = std::vector<std::string_view>;

stop_matcher matcher_of(const texts& stops, bool include = false) {
  auto made = stop_matcher::make(stops, include, std::pmr::get_default_resource());
  check(bool(made));
  return *std::move(made);
}

struct outcome {
  std::string text;
  bool stopped = false;
  uint32_t which = 0;
  bool operator==(const outcome&) const = default;
};

outcome run(stop_matcher matcher, const texts& pieces) {
  outcome all;
  for (auto piece : pieces) all.text += matcher.feed(piece);
  all.text += matcher.finish();
  all.stopped = matcher.stopped();
  if (all.stopped) all.which = matcher.which();
  return all;
}

/// The definition: the first end of any stop, the longest there, found in the whole text.
outcome search(const texts& stops, bool include, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::string_view before(text.data(), end);
    outcome found;
    size_t longest = 0;
    for (uint32_t i = 0; i < stops.size(); ++i) {
      if (!before.ends_with(stops[i]) || stops[i].size() <= longest) continue;
      longest = stops[i].size();
      found = {std::string(before.substr(0, end - (include ? 0 : longest))), true, i};
    }
    if (found.stopped) return found;
  }
  return {text, false, 0};
}

TEST(StopMatcher, EndsTheTextBeforeTheStop) {
  EXPECT_EQ(run(matcher_of({"END"}), {"one EN", "D two"}), (outcome{"one ", true, 0}));
}

TEST(StopMatcher, KeepsTheStopIfAsked) {
  EXPECT_EQ(run(matcher_of({"END"}, true), {"one EN", "D two"}), (outcome{"one END", true, 0}));
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStop) {
  auto matcher = matcher_of({"aab"});
  EXPECT_EQ(matcher.feed("xaa"), "x");
  EXPECT_EQ(matcher.feed("a"), "a");  // the last two may still begin "aab"
  EXPECT_EQ(matcher.feed("c"), "aac");
  EXPECT_EQ(matcher.feed("a"), "");
  EXPECT_EQ(matcher.finish(), "a");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, SaysNothingAfterAStop) {
  auto matcher = matcher_of({"."});
  EXPECT_EQ(matcher.feed("a.b"), "a");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.feed("c"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, TakesTheFirstToEndAndThereTheLongest) {
  EXPECT_EQ(run(matcher_of({"abcd", "bc"}), {"xabcd"}), (outcome{"xa", true, 1}));
  EXPECT_EQ(run(matcher_of({"c", "abc", "bc"}), {"xabcd"}), (outcome{"x", true, 1}));
}

TEST(StopMatcher, WithoutStopsPassesAllTextOn) {
  EXPECT_EQ(run(matcher_of({}), {"", "a", "bc"}), (outcome{"abc", false, 0}));
}

TEST(StopMatcher, AForkGoesItsOwnWay) {
  auto one = matcher_of({"xyz"});
  EXPECT_EQ(one.feed("axy"), "a");
  auto two = one.fork(std::pmr::get_default_resource());
  EXPECT_EQ(one.feed("z"), "");
  EXPECT_TRUE(one.stopped());
  EXPECT_EQ(two.feed("y"), "xyy");
  EXPECT_FALSE(two.stopped());
}

TEST(StopMatcher, FindsWhatASearchOfTheWholeTextFindsHoweverItIsCut) {
  std::mt19937 random(4711);
  auto letters = [&random](size_t n) {
    std::string s;
    while (s.size() < n) s += char('a' + random() % 2);
    return s;
  };
  uint32_t stopped = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stop_texts;
    for (size_t n = random() % 4; n > 0; --n) stop_texts.push_back(letters(1 + random() % 9));
    texts stops(stop_texts.begin(), stop_texts.end());
    std::string text = letters(random() % 40);
    texts pieces;
    for (size_t at = 0; at < text.size();) {
      size_t n = std::min(text.size() - at, size_t(random() % 6));
      pieces.push_back(std::string_view(text).substr(at, n));
      at += n;
    }
    bool include = random() % 2;
    auto found = run(matcher_of(stops, include), pieces);
    ASSERT_EQ(found, search(stops, include, text)) << text << " " << testing::PrintToString(stops);
    stopped += found.stopped;
  }
  EXPECT_GT(stopped, 5000u);
  EXPECT_LT(stopped, 19000u);
}

TEST(StopMatcher, PassesOverWhatMayNotEndTheTextYet) {
  auto early = matcher_of({"END", "D t"});
  EXPECT_EQ(early.feed("one END", false), "one EN");  // "D" may begin another
  EXPECT_EQ(early.feed(" two EN", true), "");
  EXPECT_TRUE(early.stopped());
  auto across = matcher_of({"END"});
  EXPECT_EQ(across.feed("END E", false), "END ");
  EXPECT_EQ(across.feed("NDx"), "");
  EXPECT_TRUE(across.stopped()) << "it began before";
}

// The definition again: the first end of any stop in or behind the piece that may end the text.
TEST(StopMatcher, FindsAfterAnEarlyPartWhatASearchFinds) {
  std::mt19937_64 random(7);
  auto letters = [&random](size_t most) {
    std::string text;
    for (size_t n = 1 + random() % most; n > 0; --n) text += char('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    std::string one = letters(4), other = letters(4), early = letters(8), late = letters(12);
    std::string text = early + late, expected = text;
    texts stops{one, other};
    for (size_t end = early.size() + 1; end <= text.size() && expected == text; ++end)
      for (size_t begin = 0; begin < end && expected == text; ++begin)
        for (auto stop : stops)
          if (text.substr(begin, end - begin) == stop) expected = text.substr(0, begin);
    auto matcher = matcher_of(stops);
    std::string said(matcher.feed(early, false));
    said += matcher.feed(late);
    said += matcher.finish();
    EXPECT_EQ(said, expected) << one << ' ' << other << ' ' << early << ' ' << late;
  }
}

TEST(StopMatcher, NeverHoldsMoreThanTheLongestStopLessOne) {
  auto matcher = matcher_of({"aaaa", "aab"});
  size_t fed = 0, given = 0;
  for (int i = 0; i < 3; ++i) {
    fed += 1;
    given += matcher.feed("a").size();
    EXPECT_LE(fed - given, 3u);
  }
}

TEST(StopMatcher, RefusesBeyondItsLimits) {
  auto memory = std::pmr::get_default_resource();
  std::string longest(limits::stop_bytes_max, 'a'), longer = longest + "a";
  texts many(limits::stops_max, "stop");
  EXPECT_TRUE(stop_matcher::make(texts{longest}, false, memory));
  EXPECT_TRUE(stop_matcher::make(many, false, memory));
  EXPECT_FALSE(stop_matcher::make(texts{longer}, false, memory));
  EXPECT_FALSE(stop_matcher::make(texts{"a", ""}, false, memory));
  many.push_back("stop");
  auto refused = stop_matcher::make(many, false, memory);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.why().text, "stop: 65 strings; at most 64 are allowed");
}

TEST(StopMatcher, FindsTheLongestStopAllowed) {
  std::string stop(limits::stop_bytes_max, 'a'), text = "b" + stop.substr(1) + "b" + stop + "c";
  EXPECT_EQ(run(matcher_of({stop}), {text}), (outcome{"b" + stop.substr(1) + "b", true, 0}));
}

}  // namespace
}  // namespace lethe
