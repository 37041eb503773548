// What a recording tells of its requests, and how another run of them is compared with it.
#include <gtest/gtest.h>

#include "runtime/trace/schedule.hpp"
#include "runtime/trace/trace_text.hpp"
#include "tests/unit/trace_story.hpp"

namespace lethe {
namespace {

bool says(const std::string& text, const std::string& what) { return text.find(what) != text.npos; }

replay_schedule scheduled(const timeline& t) {
  auto s = schedule_of(t);
  EXPECT_TRUE(s) << (s ? "" : s.why().text);
  return s ? *std::move(s) : replay_schedule{};
}

timeline two_requests() {
  two_hosts w;
  w.whole(1, 0, 4);
  w.whole(2, 2 * ms, 3);
  return make_timeline(w.s.gather(9 * ms));
}

/// The recorded messages as a replay that changes nothing would have them.
std::vector<scheduled_message> again(const replay_schedule& s) { return s.messages; }

TEST(TraceReplay, KnowsWhatEachClientDidAndWhen) {
  auto s = scheduled(two_requests());
  ASSERT_EQ(s.requests.size(), 2u);
  EXPECT_EQ(s.requests[0].asked_ns, 0);
  EXPECT_EQ(s.requests[1].asked_ns, 2 * ms);
  EXPECT_EQ(s.requests[0].pieces, 4u);
  EXPECT_EQ(s.requests[1].pieces, 3u);
  EXPECT_EQ(s.requests[0].sealed_bytes, 4000u);
  EXPECT_GT(s.requests[0].runs_ns, 2 * ms);
  EXPECT_TRUE(s.requests[0].released);
  EXPECT_FALSE(s.requests[0].left_after);
  EXPECT_EQ(s.engines, std::vector<uint16_t>{2});
  EXPECT_TRUE(s.pieces_recorded);
  EXPECT_EQ(s.messages.size(), 5u + 4 + 2 + 5 + 3 + 2);
  EXPECT_EQ(left_out_text(s), "");
}

TEST(TraceReplay, ARequestWhoseBeginningIsLostIsLeftOutAndCounted) {
  two_hosts w;
  w.whole(1, 0);
  w.finish(2, 2 * ms);  // its beginning was overwritten
  auto s = scheduled(make_timeline(w.s.gather(9 * ms)));
  EXPECT_EQ(s.requests.size(), 1u);
  EXPECT_EQ(s.cut, 1u);
  EXPECT_TRUE(says(left_out_text(s), "left out: 1 request whose beginning is not in the records"));
}

TEST(TraceReplay, WhatWasTurnedAwayOrLostItsEngineIsLeftOutAndCounted) {
  two_hosts w;
  w.whole(1, 0);
  w.s.take(w.s.send<schema::Place>(2, w.face, ms), w.scheduler, ms + us);
  w.s.take(w.s.send<schema::Placed>(2, w.scheduler, ms + 2 * us), w.face, ms + 9 * us);
  w.begin(3, 2 * ms);
  w.s.take(w.s.send<schema::Lost>(3, w.scheduler, 5 * ms), w.face, 6 * ms);
  auto s = scheduled(make_timeline(w.s.gather(9 * ms)));
  EXPECT_EQ(s.requests.size(), 1u);
  EXPECT_EQ(s.unplaced, 1u);
  EXPECT_EQ(s.lost, 1u);
}

TEST(TraceReplay, AClientThatLeftDidSoAfterSoManyPieces) {
  two_hosts w;
  w.begin(1, 0);
  auto piece = [&](int64_t sent) {
    w.s.take(w.s.send<schema::Answer>(1, w.request, sent), w.face, sent + 100 * us);
  };
  piece(2 * ms);
  w.s.take(w.s.send<schema::Cancel>(1, w.face, 3 * ms), w.scheduler, 3 * ms + 10 * us);
  piece(4 * ms);  // it was on its way
  auto s = scheduled(make_timeline(w.s.gather(9 * ms)));
  EXPECT_EQ(s.requests[0].left_after, 1u);
  EXPECT_EQ(s.requests[0].pieces, 2u);
}

TEST(TraceReplay, ARecordingWithoutARequestIsRefused) {
  story s;
  s.process("a", 1, 0);
  auto none = schedule_of(make_timeline(s.gather(ms)));
  ASSERT_FALSE(none);
  EXPECT_TRUE(says(none.why().text, "no request")) << none.why().text;
}

TEST(TraceReplay, AnHourTooMuchIsRefused) {
  auto span = [](int64_t hours) {
    two_hosts w;
    w.whole(1, 0);
    w.whole(2, hours * 3'600'000 * ms);
    return schedule_of(make_timeline(w.s.gather(99 * 3'600'000 * ms)));
  };
  EXPECT_TRUE(span(23));
  auto day = span(24);  // and what the request takes
  ASSERT_FALSE(day);
  EXPECT_TRUE(says(day.why().text, "span 24 hours; at most 24")) << day.why().text;
}

TEST(TraceReplay, AnEngineTooManyIsRefused) {
  auto many = [](uint16_t engines) {
    two_hosts w;
    for (uint16_t i = 0; i < engines; ++i) {
      w.engine.index = w.request.index = i;
      w.whole(i + 1, i * ms);
    }
    return schedule_of(make_timeline(w.s.gather(999 * ms)));
  };
  EXPECT_TRUE(many(256));
  auto refused = many(257);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(says(refused.why().text, "257 engines; at most 256")) << refused.why().text;
}

TEST(TraceReplay, ARequestThatStillRunsHasNoEnd) {
  two_hosts w;
  w.begin(1, 0);
  auto s = scheduled(make_timeline(w.s.gather(9 * ms)));
  EXPECT_FALSE(s.requests[0].released);
  // What it does after the records were gathered differs from nothing.
  auto more = again(s);
  more.push_back({{1, capnp::typeId<schema::Release>(), actor_kind::engine, 0}, 0, 20 * ms});
  EXPECT_FALSE(compare(s, more).any());
}

TEST(TraceReplay, TheSameMessagesAreNoDifference) {
  auto s = scheduled(two_requests());
  auto d = compare(s, again(s));
  EXPECT_FALSE(d.any());
  EXPECT_EQ(d.same, s.messages.size());
  EXPECT_EQ(d.late, 0u);
}

size_t at(const replay_schedule& s, uint64_t request, uint64_t type, actor_kind taker) {
  for (size_t i = 0; i < s.messages.size(); ++i)
    if (s.messages[i].what == taken_message{request, type, taker, 0}) return i;
  ADD_FAILURE() << "not in the schedule";
  return 0;
}

TEST(TraceReplay, AMessageThatItsTakerTookElsewhereIsTold) {
  auto s = scheduled(two_requests());
  auto moved = again(s);
  size_t place = at(s, 1, capnp::typeId<schema::Place>(), actor_kind::scheduler);
  size_t release = at(s, 1, capnp::typeId<schema::Release>(), actor_kind::scheduler);
  std::rotate(moved.begin() + ptrdiff_t(place), moved.begin() + ptrdiff_t(place) + 1,
              moved.begin() + ptrdiff_t(release) + 1);
  auto d = compare(s, moved);
  ASSERT_EQ(d.reordered.size(), 1u);
  EXPECT_EQ(d.reordered[0].what, s.messages[place].what);
  EXPECT_EQ(d.same, s.messages.size() - 1);
  EXPECT_TRUE(d.not_replayed.empty() && d.not_recorded.empty());
  EXPECT_TRUE(says(difference_text(s, d), "Place 1 of 0000000000000001 to scheduler"));
}

TEST(TraceReplay, TwoActorsAreNotComparedWithEachOther) {
  auto s = scheduled(two_requests());
  auto moved = again(s);
  size_t placed = at(s, 1, capnp::typeId<schema::Placed>(), actor_kind::face);
  std::swap(moved[placed], moved[placed + 1]);  // the face's, and the scheduler's next
  ASSERT_NE(moved[placed].what.taker, moved[placed + 1].what.taker);
  EXPECT_FALSE(compare(s, moved).any());
}

TEST(TraceReplay, WhatIsMissingOnEitherSideIsTold) {
  auto s = scheduled(two_requests());
  auto fewer = again(s);
  size_t release = at(s, 2, capnp::typeId<schema::Release>(), actor_kind::scheduler);
  fewer.erase(fewer.begin() + ptrdiff_t(release));
  auto d = compare(s, fewer);
  ASSERT_EQ(d.not_replayed.size(), 1u);
  EXPECT_EQ(d.not_replayed[0].what, s.messages[release].what);
  auto recorded_fewer = s;
  recorded_fewer.messages.erase(recorded_fewer.messages.begin() + ptrdiff_t(release));
  d = compare(recorded_fewer, again(s));
  ASSERT_EQ(d.not_recorded.size(), 1u);
  EXPECT_TRUE(says(difference_text(s, d), "not recorded   1\n  Release 1 of"))
      << difference_text(s, d);
}

TEST(TraceReplay, HowManyPiecesAnAnswerHadIsToldAndNoDifference) {
  auto s = scheduled(two_requests());
  auto fewer = again(s);
  fewer.erase(fewer.begin() +
              ptrdiff_t(at(s, 1, capnp::typeId<schema::Answer>(), actor_kind::face)));
  auto d = compare(s, fewer);
  EXPECT_FALSE(d.any());
  EXPECT_EQ(d.pieces_recorded, 7u);
  EXPECT_EQ(d.pieces_replayed, 6u);
  EXPECT_TRUE(says(difference_text(s, d), "7 recorded, 6 replayed"));
  s.pieces_recorded = false;  // the mode does not record them
  EXPECT_FALSE(says(difference_text(s, d), "replayed: how many"));
}

TEST(TraceReplay, AnotherEngineAndALateMessageAreTold) {
  auto s = scheduled(two_requests());
  auto other = again(s);
  auto& submit = other[at(s, 2, capnp::typeId<schema::Submit>(), actor_kind::engine)];
  submit.index = 1;
  submit.at_ns += 3 * ms;
  auto d = compare(s, other);
  EXPECT_EQ(d.elsewhere, std::vector<uint64_t>{2});
  EXPECT_EQ(d.late, 1u);
  EXPECT_EQ(d.latest_ns, 3 * ms);
  other[0].at_ns += ms;  // not above a millisecond
  EXPECT_EQ(compare(s, other).late, 1u);
}

}  // namespace
}  // namespace lethe
