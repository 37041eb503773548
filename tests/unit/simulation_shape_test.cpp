// When the pieces of an answer leave, under a fake clock: with a tick, whatever is in them.
#include <bit>

#include "tests/unit/simulated_cluster.hpp"

namespace lethe {
namespace {

using namespace sim;

constexpr answer_shape one_size{.chunk_bytes = 256}, ticking{.chunk_bytes = 256, .tick_ms = 20};

struct heard_piece {
  uint64_t at_us;
  size_t bytes;
};

/// One engine, and the face that asks it.
class shaped_cluster : public simulated_cluster {
 public:
  explicit shaped_cluster(const answer_shape& shape)
      : simulated_cluster(
            {.seed = 1, .stop_once_in = 0, .shape = shape},
            "name = \"shape\"\nprofile = \"lab\"\n[model]\npath = \"/synthetic\"\ncontext = 512\n"
            "[[hosts]]\nname = \"here\"\ncores = 1\n[engines]\nthreads = 1\n"
            "[batching]\nrunning = 4\nqueue = 0\n",
            {.pages = 256}) {
    on_.face_state().heard = [this](uint64_t id, size_t bytes) {
      heard[id].push_back({on_.now_us(), bytes});
    };
    has_engines(1);
    for (auto* core : on_.living_cores()) core->step_us = step_us;
  }

  void ask(wish w) {
    if (w.prompt.empty()) w.prompt.assign(3, on_.words.plain().front());
    on_.face_state().wishes.push_back(std::move(w));
    caf::anon_send(on_.face, stirred::value);
  }
  bool ended() { return on_.face_state().open() == 0 && on_.requests_alive.empty(); }
  /// The pieces of one answer, their times counted from its first.
  std::vector<heard_piece> answer_to(wish w) {
    heard.clear();
    ask(std::move(w));
    until([this] { return ended(); });
    auto all = heard.empty() ? std::vector<heard_piece>() : heard.begin()->second;
    for (size_t i = all.size(); i-- > 0;) all[i].at_us -= all[0].at_us;
    return all;
  }

  static constexpr uint64_t step_us = 3000;
  std::map<uint64_t, std::vector<heard_piece>> heard;
};

/// The first has the stream's nonce in front.
bool of_one_size(const std::vector<heard_piece>& all) {
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].bytes != all.back().bytes + (i == 0 ? 17 : i + 1 == all.size() ? 0 : 1))
      return false;
  return true;
}

const wish quick{.max_tokens = 1}, slow{.max_tokens = 24}, whole{.max_tokens = 24, .stream = false},
    wrong{.kind = wish::what::no_json}, three{.max_tokens = 20, .choices = 3};

TEST(AnswerShape, PiecesOfATickLeaveAtItsTimesWhateverIsInThem) {
  shaped_cluster cluster(ticking);
  for (const auto& w : {quick, slow, whole, wrong, three}) {
    auto all = cluster.answer_to(w);
    ASSERT_GE(all.size(), 2u);
    EXPECT_TRUE(std::has_single_bit(all.size())) << all.size();
    EXPECT_TRUE(of_one_size(all));
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].at_us, i * 20'000) << i;
  }
}

/// Else when a piece leaves tells when its request was taken.
TEST(AnswerShape, AllAnswersTickAtTheSameInstants) {
  shaped_cluster cluster(ticking);
  std::set<uint64_t> phases;
  for (int i = 0; i < 4; ++i) {
    cluster.ask(slow);
    bool later = false;
    cluster.on_.sys->spawn(alarm, 7'000, [&later] { later = true; });
    cluster.until([&] { return later; });
  }
  cluster.until([&] { return cluster.ended(); });
  ASSERT_EQ(cluster.heard.size(), 4u);
  for (const auto& [id, all] : cluster.heard)
    for (const auto& p : all) phases.insert(p.at_us % 20'000);
  EXPECT_EQ(phases.size(), 1u);
}

TEST(AnswerShape, WithoutATickTheyLeaveWhenThereIsSomething) {
  shaped_cluster cluster(one_size);
  std::set<uint64_t> lasted;
  for (const auto& w : {quick, slow, three}) {
    auto all = cluster.answer_to(w);
    EXPECT_TRUE(std::has_single_bit(all.size())) << all.size();
    EXPECT_TRUE(of_one_size(all));
    lasted.insert(all.back().at_us);
  }
  EXPECT_EQ(lasted.size(), 3u);
  EXPECT_LT(*lasted.begin(), 20'000u);
}

TEST(AnswerShape, UnshapedPiecesHaveTheSizesOfWhatIsInThem) {
  shaped_cluster cluster({});
  EXPECT_FALSE(of_one_size(cluster.answer_to(slow)));
  EXPECT_FALSE(of_one_size(cluster.answer_to(wrong)));
}

TEST(AnswerShape, AClientThatPausesMissesTicksAndGetsNoneLater) {
  shaped_cluster cluster(ticking);
  auto patient = wish{.max_tokens = 60, .choices = 4};
  auto all = cluster.answer_to(patient);
  ASSERT_GT(all.size(), 2 * limits::answer_window);
  patient.pauses_after = 3;
  patient.pause_ms = 2000;
  auto paused = cluster.answer_to(patient);
  EXPECT_TRUE(std::has_single_bit(paused.size()));
  for (size_t i = 0; i < paused.size(); ++i) {
    EXPECT_EQ(paused[i].at_us % 20'000, 0u) << i;
    if (i > 0) {
      EXPECT_GE(paused[i].at_us, paused[i - 1].at_us + 20'000) << i;
    }
  }
  EXPECT_GT(paused.back().at_us, all.back().at_us + 1'000'000);
}

/// Room for four, and four answers that only pad: others are admitted all the same.
TEST(AnswerShape, APlaceIsFreeWhileItsAnswerIsPadded) {
  shaped_cluster cluster({.chunk_bytes = 256, .tick_ms = 400});
  for (int i = 0; i < 4; ++i) cluster.ask(slow);
  cluster.until([&] { return cluster.on_.desk().requests() == 0 && cluster.heard.size() == 4; });
  EXPECT_EQ(cluster.on_.requests_alive.size(), 4u);
  for (int i = 0; i < 4; ++i) cluster.ask(quick);
  cluster.until([&] { return cluster.on_.desk().requests() == 4; });
  EXPECT_EQ(cluster.on_.requests_alive.size(), 4u) << "some padding has ended";
  cluster.until([&] { return cluster.ended(); });
  EXPECT_EQ(cluster.on_.facts.endings[size_t(ending::served)], 8u);
}

TEST(AnswerShape, ADrainDoesNotCutPadding) {
  shaped_cluster cluster({.chunk_bytes = 256, .tick_ms = 400});
  cluster.ask(slow);
  cluster.until([&] { return cluster.on_.desk().requests() == 0 && !cluster.heard.empty(); });
  ASSERT_EQ(cluster.on_.requests_alive.size(), 1u) << "it is not padded any more";
  cluster.go_down();
  EXPECT_EQ(cluster.on_.facts.endings[size_t(ending::served)], 1u);
}

TEST(AnswerShape, WhoLeavesWhileItPadsEndsIt) {
  shaped_cluster cluster({.chunk_bytes = 256, .tick_ms = 400});
  wish w = slow;
  w.leaves_after = 1 + uint32_t(cluster.answer_to(slow).size()) - 2;
  cluster.ask(w);
  cluster.until([&] { return cluster.ended(); });
  EXPECT_EQ(cluster.on_.facts.endings[size_t(ending::cancelled)], 1u);
}

}  // namespace
}  // namespace lethe
