// Made-up hosts whose clocks differ: what is concluded must be what happened.
#include <gtest/gtest.h>

#include "runtime/trace/message_names.hpp"
#include "trace_story.hpp"

namespace lethe {
namespace {

std::vector<std::string> path_of(const timeline& t, const traced_request& r) {
  std::vector<std::string> path;
  for (uint32_t i : r.events)
    path.push_back(message_name(t.events[i].type) + ">" + name_of(t.events[i].receiver.kind));
  return path;
}

const std::vector<std::string> true_path{"Place>scheduler", "Placed>face",    "Submit>scheduler",
                                         "Submit>engine",   "Submit>request", "Answer>face",
                                         "Release>engine",  "Answer>face",    "Release>scheduler"};

/// The same by time alone.
std::vector<std::string> by_time(const timeline& t) {
  traced_request all;
  for (uint32_t i = 0; i < t.events.size(); ++i) all.events.push_back(i);
  return path_of(t, all);
}

TEST(Timeline, SkewedHostsAreAligned) {
  for (int64_t skew : {int64_t{0}, 7 * ms, -7 * ms, 90'000'000 * ms, -3'000'000 * ms}) {
    two_hosts w(skew);
    w.whole(0xabc, 0);
    auto t = make_timeline(w.s.gather(5 * ms));
    ASSERT_EQ(t.requests.size(), 1u);
    const auto& r = t.requests[0];
    EXPECT_EQ(path_of(t, r), true_path) << skew;
    EXPECT_EQ(by_time(t), path_of(t, r)) << skew;
    EXPECT_EQ(r.total_ns(), 1730 * us) << skew;
    EXPECT_EQ(r.contradictions, 0u) << skew;
    EXPECT_EQ(r.processes.size(), 2u);
    EXPECT_EQ(t.now_ns - r.end_ns, 5 * ms - 1730 * us) << skew;
    // From the end of the scheduler's hand, on another clock, to the engine's.
    EXPECT_EQ(t.events[r.events[3]].waited_ns, 180 * us) << skew;
    EXPECT_EQ(t.events[r.events[5]].waited_ns, 200 * us) << skew;
    EXPECT_FALSE(t.gaps.any());
  }
}

// The negative control: with the offsets left out, time alone tells another story.
TEST(Timeline, WithoutAlignmentTheOrderByTimeIsWrong) {
  two_hosts w(-7 * ms);
  w.whole(0xabc, 0);
  auto all = w.s.gather(5 * ms);
  for (auto& p : all.processes) p.offset_ns = 0;
  auto t = make_timeline(std::move(all));
  EXPECT_NE(by_time(t), true_path);
  EXPECT_EQ(by_time(t).front(), "Submit>engine");
  // Causes still come first, and it says that the clocks disagree.
  const auto& r = t.requests[0];
  auto path = path_of(t, r);
  EXPECT_EQ(path.front(), "Place>scheduler");
  EXPECT_LT(std::ranges::find(path, "Submit>scheduler"), std::ranges::find(path, "Submit>engine"));
  EXPECT_GT(r.contradictions, 0u);
  EXPECT_TRUE(r.contradicts_beyond_error());
}

TEST(Timeline, ErrorsWithinWhatTheClockAdmitsAreTold) {
  two_hosts w(7 * ms, 300 * us, -250 * us);
  w.whole(1, 0);
  auto t = make_timeline(w.s.gather(5 * ms));
  const auto& r = t.requests[0];
  EXPECT_EQ(path_of(t, r)[3], "Submit>engine");  // though its time is before the scheduler's
  EXPECT_GT(r.contradictions, 0u);
  EXPECT_FALSE(r.contradicts_beyond_error()) << r.worst_ns;
  EXPECT_EQ(r.error_ns, 300u * us);
}

TEST(Timeline, NoEffectComesBeforeItsCauseHoweverClocksErr) {
  for (int64_t misjudged = -3 * ms; misjudged <= 3 * ms; misjudged += 170 * us) {
    two_hosts w(ms, 0, misjudged);
    w.whole(1, 0, 5);
    w.whole(2, 100 * us, 5);
    auto t = make_timeline(w.s.gather(9 * ms));
    for (const auto& r : t.requests) {
      std::map<uint32_t, size_t> place;
      std::map<uint32_t, uint64_t> lamport;
      for (size_t i = 0; i < r.events.size(); ++i) {
        const auto& e = t.events[r.events[i]];
        place[r.events[i]] = i;
        EXPECT_GT(e.lamport, lamport[e.process]);
        lamport[e.process] = e.lamport;
      }
      ASSERT_EQ(place.size(), r.events.size());
      for (uint32_t i : r.events) {
        if (t.events[i].via != nowhere) {
          EXPECT_LT(place.at(t.events[i].via), place.at(i));
        }
      }
    }
  }
}

TEST(Timeline, CausesAreTheMessagesInHandWhenItWasSent) {
  two_hosts w(7 * ms);
  w.whole(0xabc, 0);
  auto t = make_timeline(w.s.gather(5 * ms));
  const auto& order = t.requests[0].events;
  auto cause = [&](size_t i) {
    uint32_t c = t.events[order[i]].cause;
    return c == nowhere ? -1 : int(std::ranges::find(order, c) - order.begin());
  };
  EXPECT_EQ(cause(0), -1);  // a face begins by itself
  EXPECT_EQ(cause(1), 0);
  EXPECT_EQ(cause(2), 1);
  EXPECT_EQ(cause(3), 2);  // passed on by the scheduler
  EXPECT_EQ(cause(4), 3);
  EXPECT_EQ(cause(5), 4);  // an answer: after the request had opened the seal
  EXPECT_TRUE(t.events[order[1]].within);
  EXPECT_FALSE(t.events[order[5]].within);
  EXPECT_EQ(t.events[order[3]].via, order[2]);
  EXPECT_EQ(t.events[order[8]].via, order[6]);  // Release: engine, then scheduler
}

TEST(Timeline, TwoLikeMessagesToOneActorAreNotPassedOn) {
  two_hosts w;
  w.begin(1, 0);
  auto one = w.s.send<schema::Answer>(1, w.request, ms);
  w.s.take(one, w.face, 2 * ms);
  w.s.take(one, w.face, 3 * ms);
  auto t = make_timeline(w.s.gather(5 * ms));
  EXPECT_EQ(t.events[t.requests[0].events.back()].via, nowhere);
}

TEST(Timeline, HostsThatShareAPidAreToldApart) {
  two_hosts w(7 * ms, 0, 0, 100);
  w.whole(1, 0);
  auto t = make_timeline(w.s.gather(5 * ms));
  const auto& r = t.requests[0];
  EXPECT_EQ(r.contradictions, 0u);
  EXPECT_EQ(r.causeless, 0u);
  for (uint32_t i : r.events)
    if (t.events[i].type == capnp::typeId<schema::Answer>()) {
      EXPECT_EQ(t.events[i].sender_process, w.b);
    }
}

TEST(Timeline, SaysWhatIsMissing) {
  two_hosts w;
  w.whole(1, 0);
  auto all = w.s.gather(5 * ms);
  EXPECT_FALSE(make_timeline(all).gaps.any());

  auto lossy = all;
  lossy.processes[1].lost = 3;
  auto lost = make_timeline(lossy).gaps;
  ASSERT_EQ(lost.lost.size(), 1u);
  EXPECT_EQ(lost.lost[0].records, 3u);

  auto silent = all;
  silent.processes[1] = {.host = "b"};
  auto t = make_timeline(silent);
  EXPECT_EQ(t.gaps.silent, std::vector<uint32_t>{1});
  ASSERT_FALSE(t.gaps.absent.empty());  // who sent the answers
  EXPECT_EQ(t.gaps.absent[0].kind, actor_kind::request);
  EXPECT_EQ(t.requests[0].causeless, 3u);  // two answers, and the release

  auto torn = all;  // the scheduler's record of Place went first
  torn.processes[0].records.erase(torn.processes[0].records.begin());
  auto gone = make_timeline(torn);
  EXPECT_EQ(gone.gaps.causeless, 1u);
  EXPECT_EQ(gone.gaps.causeless_requests, 1u);
}

TEST(Timeline, RecordsThatWaitForEachOtherInACircleAreAllTold) {
  two_hosts w;
  w.whole(1, 0);
  auto all = w.s.gather(5 * ms);
  for (auto& p : all.processes)
    for (auto& r : p.records) r.lamport = 1000 - r.lamport;
  auto t = make_timeline(all);
  EXPECT_EQ(t.requests[0].events.size(), 9u);
}

TEST(Timeline, FindsRequestsByTheBeginningOfTheirId) {
  two_hosts w;
  w.whole(0xab00000000000001, 0);
  w.whole(0xabc0000000000002, 3 * ms);
  auto t = make_timeline(w.s.gather(9 * ms));
  EXPECT_EQ((*find_request(t, "last"))->id, 0xabc0000000000002);
  EXPECT_EQ((*find_request(t, "ab0"))->id, 0xab00000000000001);
  EXPECT_EQ((*find_request(t, "0xABC"))->id, 0xabc0000000000002);
  EXPECT_NE(find_request(t, "ab").why().text.find("2 requests begin with ab"), std::string::npos);
  EXPECT_NE(find_request(t, "ff").why().text.find("no request ff"), std::string::npos);
  for (const char* wrong : {"", "xyz", "00000000000000001", "0x"})
    EXPECT_NE(find_request(t, wrong).why().text.find("in hex"), std::string::npos) << wrong;
  EXPECT_FALSE(find_request(make_timeline({}), "last"));
}

TEST(Clocks, ProcessesOfAHostNarrowItsOffsetTogether) {
  story s;
  s.process("a", 1, -5 * ms, 100 * us, 90 * us);
  s.process("a", 2, -5 * ms, 100 * us, -90 * us);
  s.process("b", 3, 2 * ms, 40 * us, 10 * us);
  auto clocks = align_clocks(s.gather(ms));
  for (int p : {0, 1}) {
    EXPECT_EQ(clocks[p].offset_ns, 5 * ms) << p;
    EXPECT_EQ(clocks[p].error_ns, 10u * us) << p;
  }
  EXPECT_EQ(clocks[2].offset_ns, -2 * ms + 10 * us);
  EXPECT_EQ(clocks[2].error_ns, 40u * us);
}

TEST(Clocks, ProcessesOfAHostThatDisagreeAreAlignedEachByItselfAndThatIsTold) {
  story s;
  s.process("a", 1, 0, 100 * us);
  s.process("a", 2, 5 * ms, 100 * us);
  auto t = make_timeline(s.gather(ms));
  EXPECT_EQ(t.clocks[0].offset_ns, 0);
  EXPECT_EQ(t.clocks[1].offset_ns, -5 * ms);
  EXPECT_EQ(t.gaps.disagreeing_hosts, std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace lethe
