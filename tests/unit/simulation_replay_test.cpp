// A recording that is run again on the cluster's own actors.
#include <gtest/gtest.h>

#include "actors/sim/replay.hpp"
#include "actors/sim/synthetic_model.hpp"
#include "tests/unit/trace_story.hpp"

namespace lethe {
namespace {

bool says(const std::string& text, const std::string& what) { return text.find(what) != text.npos; }

struct run {
  sim::replayed how;
  replay_difference d;
  std::string text;
};

run again(const replay_schedule& s) {
  auto model = sim::synthetic_model();
  EXPECT_TRUE(model) << (model ? "" : model.why().text);
  auto how = sim::replay(s, *model);
  auto d = compare(s, how.taken);
  auto text = difference_text(s, d);
  return {std::move(how), std::move(d), std::move(text)};
}

run again(const timeline& t) {
  auto s = schedule_of(t);
  EXPECT_TRUE(s) << (s ? "" : s.why().text);
  return again(*s);
}

/// One request after the other, and in company.
two_hosts some_requests() {
  two_hosts w;
  for (uint64_t id = 1; id <= 12; ++id) w.whole(id, int64_t(id) * 700 * us, 3 + int(id % 5));
  return w;
}

TEST(Replay, ARecordedClusterDoesTheSameAgain) {
  auto w = some_requests();
  auto r = again(make_timeline(w.s.gather(40 * ms)));
  EXPECT_EQ(r.how.violation, "");
  EXPECT_FALSE(r.d.any()) << r.text;
  EXPECT_EQ(r.d.late, 0u) << r.text;
  EXPECT_EQ(r.how.served, 12u);
  EXPECT_GE(r.d.same, 12u * 6);
}

TEST(Replay, IsTheSameEveryTime) {
  auto w = some_requests();
  auto t = make_timeline(w.s.gather(40 * ms));
  auto a = again(t), b = again(t);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.how.messages, b.how.messages);
  EXPECT_EQ(a.how.virtual_ns, b.how.virtual_ns);
  ASSERT_EQ(a.how.records.events.size(), b.how.records.events.size());
  for (size_t i = 0; i < a.how.records.events.size(); ++i) {
    const auto &x = a.how.records.events[i], &y = b.how.records.events[i];
    ASSERT_EQ(std::tuple(x.at_ns, x.type, x.bytes, x.lamport),
              std::tuple(y.at_ns, y.type, y.bytes, y.lamport));
  }
}

TEST(Replay, HoldsEachMessageUntilItsRecordedTime) {
  two_hosts w;
  w.begin(1, 0);
  w.finish(1, 50 * ms);  // the answer took its time
  auto s = schedule_of(make_timeline(w.s.gather(90 * ms)));
  ASSERT_TRUE(s);
  auto r = again(*s);
  EXPECT_FALSE(r.d.any()) << r.text;
  std::map<taken_message, int64_t> at;
  for (const auto& m : r.how.taken) at[m.what] = m.at_ns;
  for (const auto& m : s->messages) {
    if (m.what.taker == actor_kind::request || is_piece(m.what.type)) continue;
    EXPECT_EQ(at[m.what], m.at_ns) << m.what.type;
  }
}

TEST(Replay, SealsRequestsOfTheRecordedLength) {
  auto w = some_requests();
  auto r = again(make_timeline(w.s.gather(40 * ms)));
  size_t seen = 0;
  for (const auto& e : r.how.records.events) {
    if (e.type != capnp::typeId<schema::Submit>()) continue;
    EXPECT_NEAR(e.bytes, 4000, 8);
    ++seen;
  }
  EXPECT_EQ(seen, 36u);  // scheduler, engine, request
}

TEST(Replay, AClientThatLeftLeavesAgain) {
  two_hosts w;
  w.whole(1, 0);
  w.begin(2, ms);
  w.s.take(w.s.send<schema::Answer>(2, w.request, 3 * ms), w.face, 3 * ms + 100 * us);
  auto cancel = w.s.send<schema::Cancel>(2, w.face, 4 * ms);
  w.s.take(cancel, w.scheduler, 4 * ms + 10 * us);
  w.s.take(cancel, w.engine, 4 * ms + 300 * us);
  auto release = w.s.send<schema::Release>(2, w.request, 5 * ms);
  w.s.take(release, w.engine, 5 * ms + 10 * us);
  w.s.take(release, w.scheduler, 5 * ms + 300 * us);
  auto r = again(make_timeline(w.s.gather(40 * ms)));
  EXPECT_EQ(r.how.violation, "");
  EXPECT_FALSE(r.d.any()) << r.text;
  EXPECT_EQ(r.how.left, 1u);
  EXPECT_EQ(r.how.served, 1u);
}

TEST(Replay, ACancelThatFindsItsRequestEndedDoesSoAgain) {
  two_hosts w;
  w.begin(1, 0);
  w.s.take(w.s.send<schema::Answer>(1, w.request, 2 * ms), w.face, 2 * ms + 100 * us);
  auto release = w.s.send<schema::Release>(1, w.request, 3 * ms);
  auto cancel = w.s.send<schema::Cancel>(1, w.face, 3 * ms);
  w.s.take(cancel, w.scheduler, 3 * ms + 10 * us);
  w.s.take(release, w.engine, 3 * ms + 50 * us);
  w.s.take(release, w.scheduler, 3 * ms + 200 * us);
  w.s.take(cancel, w.engine, 3 * ms + 300 * us);
  w.s.take(w.s.send<schema::Release>(1, w.engine, 3 * ms + 310 * us), w.scheduler, 4 * ms);
  auto r = again(make_timeline(w.s.gather(40 * ms)));
  EXPECT_EQ(r.how.violation, "");
  EXPECT_FALSE(r.d.any()) << r.text;
}

TEST(Replay, NumbersThatNoClusterWritesDoNoHarm) {
  auto w = some_requests();
  auto s = *schedule_of(make_timeline(w.s.gather(40 * ms)));
  s.requests[0].sealed_bytes = UINT32_MAX;
  s.requests[1].sealed_bytes = 0;
  s.requests[2].pieces = 0;
  s.requests[3].runs_ns = INT64_MAX;
  s.requests[4].left_after = UINT32_MAX - 1;
  s.messages[7].at_ns = -5;
  EXPECT_EQ(again(s).how.violation, "");
}

// Negative controls: what no cluster does is told.

replay_schedule planted(uint64_t type, actor_kind taker,
                        const std::function<void(replay_schedule&, size_t)>& mistake) {
  auto w = some_requests();
  auto s = *schedule_of(make_timeline(w.s.gather(40 * ms)));
  for (size_t i = 0; i < s.messages.size(); ++i)
    if (s.messages[i].what == taken_message{5, type, taker, 0}) {
      mistake(s, i);
      std::ranges::stable_sort(s.messages, {}, &scheduled_message::at_ns);
      return s;
    }
  ADD_FAILURE() << "not in the schedule";
  return s;
}

TEST(Replay, AnEffectRecordedBeforeItsCauseIsAnotherOrder) {
  auto s = planted(capnp::typeId<schema::Submit>(), actor_kind::scheduler,
                   [](replay_schedule& all, size_t at) {
                     auto asked = all.requests[4].asked_ns;
                     all.messages[at].at_ns = asked + us;  // and its Place 10 us after it asked
                   });
  auto r = again(s);
  EXPECT_EQ(r.how.violation, "");
  ASSERT_EQ(r.d.reordered.size(), 1u) << r.text;
  EXPECT_EQ(r.d.reordered[0].what.request, 5u);
  EXPECT_TRUE(says(r.text, "other order    1\n")) << r.text;
}

TEST(Replay, ALostRecordIsAMessageThatIsReplayedOnly) {
  auto s = planted(capnp::typeId<schema::Release>(), actor_kind::scheduler,
                   [](replay_schedule& all, size_t at) {
                     all.messages.erase(all.messages.begin() + ptrdiff_t(at));
                   });
  auto r = again(s);
  ASSERT_EQ(r.d.not_recorded.size(), 1u) << r.text;
  EXPECT_TRUE(says(r.text, "Release 1 of 0000000000000005 to scheduler")) << r.text;
}

TEST(Replay, AMessageThatNobodySendsIsRecordedOnly) {
  auto s = planted(capnp::typeId<schema::Submit>(), actor_kind::scheduler,
                   [](replay_schedule& all, size_t at) {
                     auto twice = all.messages[at];
                     twice.what.number = 1;
                     all.messages.push_back(twice);
                   });
  auto r = again(s);
  EXPECT_EQ(r.how.violation, "");
  ASSERT_EQ(r.d.not_replayed.size(), 1u) << r.text;
  EXPECT_EQ(r.d.reordered.size(), 0u) << r.text;
}

TEST(Replay, ARequestOnAnotherEngineIsTold) {
  auto w = some_requests();
  auto s = *schedule_of(make_timeline(w.s.gather(40 * ms)));
  s.engines = {2, 3};  // the record says that the second had nothing to do
  auto r = again(s);
  EXPECT_FALSE(r.d.elsewhere.empty()) << r.text;
}

}  // namespace
}  // namespace lethe
