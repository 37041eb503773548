// Guesses from a choice's own words: where they come from, how many, how long it rests.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/batch/lookahead.hpp"

namespace lethe {
namespace {

using ids = std::vector<uint32_t>;

ids guessed(lookahead& l, const ids& prompt, const ids& answer, size_t room = 64) {
  ids out(room);
  out.resize(l.guess(prompt, answer, out));
  return out;
}

ids guessed(const ids& prompt, const ids& answer, size_t room = 64) {
  lookahead fresh;
  return guessed(fresh, prompt, answer, room);
}

TEST(Lookahead, SaysWhatFollowedWhereTheLastTokensStoodBefore) {
  EXPECT_EQ(guessed({1, 2, 3, 4, 5, 6}, {1, 2, 3}), (ids{4, 5}));
  EXPECT_EQ(guessed({9, 1, 2}, {3, 4, 5, 6, 1, 2, 3}), (ids{4, 5})) << "across prompt and answer";
  EXPECT_EQ(guessed({}, {1, 2, 3, 7, 8, 1, 2, 3}), (ids{7, 8}));
  EXPECT_EQ(guessed({1, 2, 3, 7, 8, 1, 2, 3}, {}), (ids{7, 8}));
}

TEST(Lookahead, ThreeTokensMustBeAlike) {
  EXPECT_EQ(guessed({1, 2, 3, 4}, {2, 3}), ids()) << "two";
  EXPECT_EQ(guessed({1, 2, 3, 4}, {1, 2, 3}), (ids{4, 1})) << "three";
  EXPECT_EQ(guessed({1, 2}, {3}), ids()) << "the last ones are no place before";
  EXPECT_EQ(guessed({}, {}), ids());
  EXPECT_EQ(guessed({5}, {5, 5}), ids());
  EXPECT_EQ(guessed({5}, {5, 5, 5}), (ids{5, 5}));
}

TEST(Lookahead, MoreTokensDecideBetweenPlacesThenTheLatest) {
  ids prompt{9, 1, 2, 3, 70, 8, 1, 2, 3, 71};
  EXPECT_EQ(guessed(prompt, {9, 1, 2, 3})[0], 70u);
  EXPECT_EQ(guessed(prompt, {8, 1, 2, 3})[0], 71u);
  EXPECT_EQ(guessed(prompt, {6, 1, 2, 3})[0], 71u) << "the latest of equals";
}

TEST(Lookahead, WhatRepeatsItselfRunsOnIntoItsGuesses) {
  lookahead l;
  l.learn(4, 4);
  EXPECT_EQ(guessed(l, {}, {4, 5, 4, 5, 4, 5}), (ids{4, 5, 4, 5, 4, 5, 4}));
}

TEST(Lookahead, KeepsToItsRoom) {
  EXPECT_EQ(guessed({1, 2, 3, 4, 5}, {1, 2, 3}, 1), (ids{4}));
  EXPECT_EQ(guessed({1, 2, 3, 4, 5}, {1, 2, 3}, 0), ids());
  lookahead l;
  for (int i = 0; i < 9; ++i) l.learn(lookahead::most, lookahead::most);
  EXPECT_EQ(guessed(l, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1, 2, 3}).size(), lookahead::most);
}

TEST(Lookahead, TriesMoreWhereItIsRightAndLessWhereNot) {
  const ids prompt{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, answer{1, 2, 3};
  lookahead l;
  EXPECT_EQ(guessed(l, prompt, answer).size(), 2u);
  l.learn(2, 2);
  EXPECT_EQ(guessed(l, prompt, answer).size(), 4u);
  l.learn(4, 2);
  EXPECT_EQ(guessed(l, prompt, answer).size(), 3u);
  l.learn(3, 3);
  EXPECT_EQ(guessed(l, prompt, answer).size(), 6u);
  l.learn(6, 1);
  EXPECT_EQ(guessed(l, prompt, answer).size(), 2u);
}

/// Steps that it lets pass before it tries again.
uint32_t rests(lookahead& l) {
  const ids prompt{1, 2, 3, 4, 5}, answer{1, 2, 3};
  for (uint32_t n = 0;; ++n)
    if (!guessed(l, prompt, answer).empty()) return n;
}

TEST(Lookahead, RestsLongerTheOftenerItIsWrong) {
  lookahead l;
  EXPECT_EQ(rests(l), 0u);
  for (uint32_t expected : {2u, 4u, 8u, 16u, 32u, 32u}) {
    l.learn(2, 0);
    EXPECT_EQ(rests(l), expected);
  }
  for (int i = 0; i < 40; ++i) l.learn(2, 0);
  EXPECT_EQ(rests(l), 32u) << "however often";
  l.learn(2, 1);
  EXPECT_EQ(rests(l), 0u);
  l.learn(2, 0);
  EXPECT_EQ(rests(l), 2u);
  l.learn(0, 0);
  EXPECT_EQ(rests(l), 0u) << "what was not tried teaches nothing";
}

/// Against the search as one would write it down.
TEST(Lookahead, FindsWhatASearchByHandFinds) {
  std::mt19937 dice(7);
  uint32_t found = 0;
  for (int n = 0; n < 3000; ++n) {
    ids all(1 + dice() % 40);
    for (uint32_t& id : all) id = dice() % 3;
    size_t cut = dice() % (all.size() + 1), best = 2, from = 0;
    for (size_t end = 1; end < all.size(); ++end) {
      size_t alike = 0;
      while (alike < std::min<size_t>(end, 8) &&
             all[end - 1 - alike] == all[all.size() - 1 - alike])
        ++alike;
      if (alike > 2 && alike >= best) best = alike, from = end;
    }
    ids expected;
    for (size_t i = 0; from != 0 && i < 2; ++i)
      expected.push_back(from + i < all.size() ? all[from + i] : expected[from + i - all.size()]);
    auto at = all.begin() + ptrdiff_t(cut);
    EXPECT_EQ(guessed(ids(all.begin(), at), ids(at, all.end())), expected);
    found += from != 0;
  }
  EXPECT_GT(found, 1000u);
}

}  // namespace
}  // namespace lethe
