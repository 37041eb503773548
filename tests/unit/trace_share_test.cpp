// Where time went, what is slow, and what is stuck.
#include <gtest/gtest.h>

#include "runtime/trace/message_names.hpp"
#include "runtime/trace/stuck.hpp"
#include "runtime/trace/time_share.hpp"
#include "runtime/trace/trace_stats.hpp"
#include "trace_story.hpp"

namespace lethe {
namespace {

TEST(TimeShare, IsWhatHappenedWhateverTheClocksShow) {
  for (int64_t skew : {int64_t{0}, 90'000 * ms}) {
    two_hosts w(skew);
    w.whole(1, 0);
    auto t = make_timeline(w.s.gather(5 * ms));
    auto s = share_of(t, t.requests[0]);
    // In hand: 10-30, 40-90, 100-120, 300-350, 360-500, 1100-1120, 1520-1530, 1700-1720, 1725-1730.
    EXPECT_EQ(s.handling_ns, (20 + 50 + 20 + 50 + 140 + 20 + 10 + 20 + 5) * us) << skew;
    // Under way to the other host: 120-300, 900-1100, 1500-1725, less what was in hand meanwhile.
    EXPECT_EQ(s.transfer_ns, (180 + 200 + 225 - 10 - 20) * us) << skew;
    // 0-10, 30-40, 90-100, 350-360.
    EXPECT_EQ(s.waiting_ns, 40 * us) << skew;
    EXPECT_EQ(s.between_ns, (400 + 380) * us) << skew;
    EXPECT_EQ(s.total_ns(), t.requests[0].total_ns()) << skew;
  }
}

TEST(TimeShare, AddsUpWhereClocksErr) {
  for (int64_t misjudged : {-2 * ms, -100 * us, 100 * us, 2 * ms}) {
    two_hosts w(0, 0, misjudged);
    w.whole(1, 0, 7);
    auto t = make_timeline(w.s.gather(9 * ms));
    EXPECT_EQ(share_of(t, t.requests[0]).total_ns(), t.requests[0].total_ns()) << misjudged;
  }
}

TEST(Quantiles, AreNearestRanks) {
  std::vector<int64_t> hundred;
  for (int64_t i = 100; i >= 1; --i) hundred.push_back(i);
  auto q = quantiles_of(hundred);
  EXPECT_EQ(std::tie(q.count, q.p50_ns, q.p99_ns, q.most_ns), std::make_tuple(100u, 50, 99, 100));
  auto one = quantiles_of({7});
  EXPECT_EQ(std::tie(one.p50_ns, one.p99_ns, one.most_ns), std::make_tuple(7, 7, 7));
  EXPECT_EQ(quantiles_of({}).count, 0u);
}

TEST(Slow, SortsByWhatIsAsked) {
  two_hosts w(7 * ms);
  w.whole(1, 0, 4);
  auto t = make_timeline(w.s.gather(9 * ms));
  auto by_handling = slowest(t, slow_by::handling);
  EXPECT_EQ(message_name(by_handling[0].type), "Submit");
  EXPECT_EQ(by_handling[0].receiver, actor_kind::request);
  EXPECT_EQ(by_handling[0].handling.p99_ns, 140 * us);
  auto by_queue = slowest(t, slow_by::queue);
  EXPECT_EQ(message_name(by_queue[0].type), "Answer");
  EXPECT_EQ(by_queue[0].receiver, actor_kind::face);
  size_t messages = 0;
  for (const auto& s : by_queue) messages += s.count;
  EXPECT_EQ(messages, t.events.size());
  for (const auto& s : by_queue)
    if (message_name(s.type) == "Answer") {
      EXPECT_EQ(s.count, 4u);
      EXPECT_EQ(s.queue.p50_ns, 200 * us);
    }
}

TEST(Diff, SetsTypesSideBySide) {
  two_hosts w;
  w.whole(1, 0, 2);
  w.whole(2, 10 * ms, 6);
  w.begin(3, 20 * ms);
  auto t = make_timeline(w.s.gather(30 * ms));
  ASSERT_EQ(t.requests.size(), 3u);
  auto pairs = diff({&t, &t.requests[0]}, {&t, &t.requests[1]});
  for (const auto& p : pairs) {
    size_t more = message_name(p.type) == "Answer" ? 3 : 1;
    EXPECT_EQ(p.b.count, p.a.count * more) << message_name(p.type);
  }
  auto with_stuck = diff({&t, &t.requests[0]}, {&t, &t.requests[2]});
  std::string only_in_first;
  for (const auto& p : with_stuck)
    if (p.b.count == 0) only_in_first += message_name(p.type) + " ";
  EXPECT_NE(only_in_first.find("Answer "), std::string::npos);
  EXPECT_NE(only_in_first.find("Release "), std::string::npos);
  EXPECT_EQ(only_in_first.find("Submit"), std::string::npos);
  EXPECT_EQ(diff({&t}, {&t}).size(), pairs.size());
}

TEST(Stuck, IsWhatWasSubmittedAndNotReleased) {
  two_hosts w(7 * ms);
  w.whole(1, 0);
  w.begin(2, 2 * ms);
  w.s.take(w.s.send<schema::Place>(3, w.face, 3 * ms), w.scheduler, 3 * ms + 5 * us);
  w.begin(4, 50 * ms);
  auto t = make_timeline(w.s.gather(60 * ms));
  auto stuck = stuck_requests(t, 0);
  ASSERT_EQ(stuck.size(), 2u);  // 1 has ended, 3 was never submitted
  EXPECT_EQ(stuck[0].request->id, 2u);
  EXPECT_EQ(stuck[0].silent_ns, 60 * ms - 2 * ms - 500 * us);
  EXPECT_EQ(t.events[stuck[0].last].receiver.kind, actor_kind::request);
  EXPECT_EQ(t.events[stuck[0].last].receiver.index, 2);
  EXPECT_EQ(stuck[1].request->id, 4u);
  EXPECT_EQ(stuck_requests(t, 9500 * us).size(), 2u);
  EXPECT_EQ(stuck_requests(t, 9500 * us + 1).size(), 1u);
}

timeline with_waits(int messages, int64_t first, int64_t second) {
  story s;
  story::actor scheduler{s.process("a", 1, 0), actor_kind::scheduler};
  story::actor engine{scheduler.process, actor_kind::engine};
  for (int i = 0; i < messages; ++i) {
    int64_t at = i * 10 * ms;
    s.take(s.send<schema::EngineLoad>(0, engine, at), scheduler,
           at + (i < messages / 2 ? first : second));
  }
  return make_timeline(s.gather(messages * 10 * ms));
}

TEST(GrowingQueues, WaitTwiceAsLongInTheirLaterHalf) {
  auto growing = growing_queues(with_waits(20, 600 * us, 1200 * us));
  ASSERT_EQ(growing.size(), 1u);
  EXPECT_EQ(growing[0].actor.kind, actor_kind::scheduler);
  EXPECT_EQ(growing[0].before_ns, 600 * us);
  EXPECT_EQ(growing[0].after_ns, 1200 * us);
  EXPECT_TRUE(growing_queues(with_waits(20, 600 * us, 1199 * us)).empty());
  EXPECT_TRUE(growing_queues(with_waits(20, 1200 * us, 600 * us)).empty());
  EXPECT_EQ(growing_queues(with_waits(20, 0, ms)).size(), 1u);
  EXPECT_TRUE(growing_queues(with_waits(20, 0, ms - 1)).empty());
  EXPECT_EQ(growing_queues(with_waits(8, 0, ms)).size(), 1u);
  EXPECT_TRUE(growing_queues(with_waits(7, 0, ms)).empty());
}

}  // namespace
}  // namespace lethe
