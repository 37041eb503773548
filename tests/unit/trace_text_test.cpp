// What the operator reads.
#include <gtest/gtest.h>

#include "runtime/base/limits.hpp"
#include "runtime/trace/trace_text.hpp"
#include "trace_story.hpp"

namespace lethe {
namespace {

bool says(const std::string& text, const std::string& what) { return text.find(what) != text.npos; }

TEST(TraceText, ListShowsTheNewestLast) {
  two_hosts w(7 * ms);
  for (uint64_t i = 1; i <= 5; ++i) w.whole(i, int64_t(i) * 10 * ms);
  auto t = make_timeline(w.s.gather(99 * ms));
  auto three = list_text(t, 3);
  EXPECT_FALSE(says(three, "0000000000000002"));
  EXPECT_LT(three.find("0000000000000003"), three.find("0000000000000005"));
  EXPECT_TRUE(says(three, "and 2 before them"));
  EXPECT_TRUE(says(three, "1.73 ms"));
  EXPECT_TRUE(says(three, "Release to scheduler@a"));
  EXPECT_FALSE(says(list_text(t, 5), "before them"));
  EXPECT_TRUE(says(list_text(make_timeline({}), 5), "no request"));
}

TEST(TraceText, FollowTellsWhoToldWhomAndWhereTimeWent) {
  two_hosts w(7 * ms, 40 * us, 10 * us);
  w.whole(0xabc, 0);
  auto t = make_timeline(w.s.gather(9 * ms));
  auto text = follow_text(t, t.requests[0], false);
  EXPECT_TRUE(says(text, "face@a → scheduler@a"));
  EXPECT_TRUE(says(text, "scheduler@a → engine 2@b (passed on)"));
  EXPECT_TRUE(says(text, "request 2@b → face@a"));
  EXPECT_TRUE(says(text, "4000"));
  EXPECT_TRUE(says(text, "█ handling 335.0 µs (19 %)"));
  EXPECT_TRUE(says(text, "aligned to within 40.0 µs: a ±0 ns b ±40.0 µs"));
  EXPECT_FALSE(says(text, "contradict"));
  for (size_t at = 0, lines = 0; at < text.size(); ++lines) {
    size_t end = text.find('\n', at);
    ASSERT_NE(end, text.npos);
    at = end + 1;
  }
}

TEST(TraceText, FollowSaysThatClocksContradict) {
  two_hosts w(0, 300 * us, -250 * us);
  w.whole(1, 0);
  auto within = make_timeline(w.s.gather(9 * ms));
  EXPECT_TRUE(says(follow_text(within, within.requests[0], false), "within their error"));
  two_hosts v(0, 3 * us, -250 * us);
  v.whole(1, 0);
  auto beyond = make_timeline(v.s.gather(9 * ms));
  EXPECT_TRUE(says(follow_text(beyond, beyond.requests[0], false), "more than their error"));
}

TEST(TraceText, FollowTellsRunsByTheirEnds) {
  two_hosts w;
  w.begin(1, 0);
  for (int i = 0; i < 40; ++i) {
    auto answer = w.s.send<schema::Answer>(1, w.request, ms + i * ms);
    w.s.take(answer, w.face, ms + i * ms + 50 * us);
    if (i % 4 > 0) continue;
    auto credit = w.s.send<schema::Credit>(1, w.face, ms + i * ms + 55 * us);
    w.s.take(credit, w.request, ms + i * ms + 90 * us, us);
  }
  auto t = make_timeline(w.s.gather(99 * ms));
  auto lines = [](const std::string& s) { return std::ranges::count(s, '\n'); };
  auto brief = follow_text(t, t.requests[0], false), whole = follow_text(t, t.requests[0], true);
  EXPECT_TRUE(says(brief, "48 more between the same two"));
  EXPECT_EQ(lines(whole) - lines(brief), 47);
  EXPECT_TRUE(says(whole, "not released"));
}

TEST(TraceText, EveryReportTellsOfGaps) {
  two_hosts w;
  w.whole(1, 0);
  auto all = w.s.gather(9 * ms);
  all.processes[0].lost = 4711;
  all.processes[0].records.erase(all.processes[0].records.begin());
  all.processes.push_back({.host = "quiet"});
  auto t = make_timeline(all);
  const auto& r = t.requests[0];
  for (const auto& text :
       {list_text(t, 9), follow_text(t, r, true), slow_text(t, slow_by::queue), stuck_text(t, 0),
        diff_text({&t}, {&t}), diff_text({&t, &r}, {&t, &r})}) {
    EXPECT_TRUE(says(text, "4711 records")) << text;
    EXPECT_TRUE(says(text, "a process on quiet did not answer")) << text;
    EXPECT_TRUE(says(text, "1 messages in 1 requests")) << text;
  }
  auto other = make_timeline(w.s.gather(9 * ms));
  EXPECT_TRUE(says(diff_text({&other}, {&t}), "in B:\ngap: process 100 on a has lost 4711"));
  EXPECT_EQ(gaps_text(other), "");
}

TEST(TraceText, StuckSaysWhoWaitsForWhom) {
  two_hosts w;
  w.begin(0x77, 0);
  auto t = make_timeline(w.s.gather(2000 * ms));
  auto text = stuck_text(t, 0);
  EXPECT_TRUE(says(text, "0000000000000077  nothing for   2.000 s")) << text;
  EXPECT_TRUE(says(text, "last: request 2@b took Submit; waits for request 2@b\n")) << text;
  EXPECT_TRUE(says(stuck_text(t, 3'000 * ms), "no request is stuck"));
}

/// Where the second host's only process is stopped and answers nobody.
std::string stuck_behind_a_silent_process(two_hosts& w, uint32_t pid = 200) {
  auto all = w.s.gather(2000 * ms);
  all.processes[w.b] = {.host = "b", .pid = pid};
  return stuck_text(make_timeline(all), 0);
}

TEST(TraceText, StuckNamesWhoIsSilentAndNotWhoPassedTheMessageOn) {
  two_hosts unknown;
  unknown.begin(1, 10 * ms);
  auto text = stuck_behind_a_silent_process(unknown);
  EXPECT_TRUE(says(text,
                   "scheduler@a took Submit; waits for process 200 on b, which does not "
                   "answer\n"))
      << text;
  two_hosts w;
  w.s.take(w.s.send<schema::EngineState>(0, w.engine, 0), w.scheduler, 50 * us);
  w.begin(1, 10 * ms);
  const std::string silent = "@b (process 200 on b, which does not answer)\n";
  text = stuck_behind_a_silent_process(w);
  EXPECT_TRUE(says(text, "scheduler@a took Submit; waits for engine 2" + silent)) << text;
  EXPECT_TRUE(says(text, "gap: process 200 on b did not answer")) << text;
  EXPECT_FALSE(says(text, "gone")) << text;
  EXPECT_TRUE(says(stuck_behind_a_silent_process(w, 0), "gone")) << "a pid that nobody knows";
  w.s.take(w.s.send<schema::Answer>(1, w.request, 20 * ms), w.face, 20 * ms + 50 * us);
  text = stuck_behind_a_silent_process(w);
  EXPECT_TRUE(says(text, "face@a took Answer; waits for request 2" + silent)) << text;
}

TEST(TraceText, StuckNamesAFaceWhoseClientTakesNoMore) {
  two_hosts w;
  w.begin(1, 0);
  auto answers = [&w, at = ms](uint32_t n) mutable {
    for (; n > 0; --n, at += ms)
      w.s.take(w.s.send<schema::Answer>(1, w.request, at), w.face, at + 50 * us);
    return stuck_text(make_timeline(w.s.gather(2000 * ms)), 0);
  };
  const char *request = "waits for request 2@b\n", *face = "waits for face@a\n";
  EXPECT_TRUE(says(answers(limits::answer_window - 1), request));
  EXPECT_TRUE(says(answers(1), face));
  w.s.take(w.s.send<schema::Credit>(1, w.face, 100 * ms), w.request, 100 * ms + 50 * us);
  EXPECT_TRUE(says(answers(0), request)) << "it may go on";
}

TEST(TraceText, StuckTellsOfAMessageThatNoEngineHasTaken) {
  two_hosts w;
  w.begin(1, 0);
  auto all = w.s.gather(2000 * ms);
  all.processes[w.b].records.clear();
  auto text = stuck_text(make_timeline(all), 0);
  EXPECT_TRUE(says(text, "scheduler@a took Submit; waits for an engine that has not taken it\n"))
      << text;
}

TEST(TraceText, ARequestThatWasToldToBeLostIsNotStuck) {
  two_hosts w;
  w.begin(1, 0);
  w.s.take(w.s.send<schema::Lost>(1, w.scheduler, 10 * ms), w.face, 10 * ms + 5 * us);
  auto text = stuck_text(make_timeline(w.s.gather(2000 * ms)), 0);
  EXPECT_TRUE(says(text, "no request is stuck")) << text;
}

TEST(TraceText, DiffShowsRatiosAndWhatOnlyOneSideHas) {
  two_hosts w;
  w.whole(1, 0, 2);
  w.begin(2, 10 * ms);
  auto t = make_timeline(w.s.gather(30 * ms));
  auto text = diff_text({&t, &t.requests[0]}, {&t, &t.requests[1]});
  EXPECT_TRUE(says(text, "only in A: 2 Answer")) << text;
  EXPECT_TRUE(says(text, "only in A: 2 Release")) << text;
  EXPECT_TRUE(says(text, "1.00")) << text;
}

TEST(TraceText, TimesHaveTheirUnit) {
  EXPECT_EQ(time_text(999), "999 ns");
  EXPECT_EQ(time_text(1000), "1.0 µs");
  EXPECT_EQ(time_text(1'500'000), "1.50 ms");
  EXPECT_EQ(time_text(61'000'000'000), "61.000 s");
}

}  // namespace
}  // namespace lethe
