// What other programs are given, read back as they read it.
#include <gtest/gtest.h>

#include <set>

#include "runtime/trace/message_names.hpp"
#include "runtime/trace/trace_export.hpp"
#include "simdjson.h"
#include "trace_story.hpp"

namespace lethe {
namespace {

using simdjson::dom::element;

/// Parsed JSON, kept with its parser; a wrong shape throws, which fails the test.
struct parsed {
  explicit parsed(const std::string& text) : padded(text), root(parser.parse(padded).value()) {}
  simdjson::dom::parser parser;
  simdjson::padded_string padded;
  element root;
};

std::string text(element e) { return std::string(e.get_string().value()); }
double number(element e) { return e.get_double().value(); }

timeline two_requests(int64_t misjudged = 0) {
  two_hosts w(7 * ms, 0, misjudged);
  w.whole(0xabc, 0, 3);
  w.whole(0xdef, 300 * us, 3);  // while the first one runs
  return make_timeline(w.s.gather(9 * ms));
}

struct perfetto {
  explicit perfetto(const timeline& t, const traced_request* only = nullptr)
      : json(perfetto_json(t, only)) {
    for (element e : json.root["traceEvents"].get_array()) {
      std::string phase = text(e["ph"]);
      auto track = std::pair(e["pid"].get_uint64().value(), e["tid"].get_uint64().value());
      if (phase == "M" && text(e["name"]) == "process_name")
        processes[track.first] = text(e["args"]["name"]);
      if (phase == "M" && text(e["name"]) == "thread_name") tracks[track] = text(e["args"]["name"]);
      if (phase == "X") slices[track].emplace_back(number(e["ts"]), number(e["dur"]));
      if (phase != "s" && phase != "f") continue;
      auto& into = phase == "s" ? starts : ends;
      EXPECT_TRUE(into.emplace(number(e["id"]), end{track, number(e["ts"])}).second);
    }
    for (auto& [track, of] : slices) std::ranges::sort(of);
  }

  using track_id = std::pair<uint64_t, uint64_t>;
  struct end {
    track_id track;
    double ts;
  };
  parsed json;
  std::map<uint64_t, std::string> processes;
  std::map<track_id, std::string> tracks;
  std::map<track_id, std::vector<std::pair<double, double>>> slices;
  std::map<double, end> starts, ends;
};

void check_shape(const perfetto& p) {
  for (const auto& [track, of] : p.slices) {
    EXPECT_TRUE(p.tracks.contains(track));
    EXPECT_TRUE(p.processes.contains(track.first));
    for (size_t i = 0; i < of.size(); ++i) {
      EXPECT_GE(of[i].first, 0);
      if (i > 0) {  // an actor has one message in hand
        EXPECT_GE(of[i].first + 1e-9, of[i - 1].first + of[i - 1].second) << p.tracks.at(track);
      }
    }
  }
  EXPECT_EQ(p.starts.size(), p.ends.size());
  for (const auto& [id, s] : p.starts) {
    ASSERT_TRUE(p.ends.contains(id));
    auto inside = [&](const perfetto::end& e) {
      return std::ranges::any_of(p.slices.at(e.track), [&](const auto& slice) {
        return slice.first - 1e-9 <= e.ts && e.ts <= slice.first + slice.second + 1e-9;
      });
    };
    EXPECT_TRUE(inside(s)) << id;
    EXPECT_TRUE(inside(p.ends.at(id))) << id;
  }
}

TEST(Perfetto, HasASliceForEachMessageAndArrowsBetweenSlices) {
  auto t = two_requests();
  perfetto p(t);
  check_shape(p);
  size_t slices = 0;
  for (const auto& [track, of] : p.slices) slices += of.size();
  EXPECT_EQ(slices, t.events.size());
  EXPECT_EQ(p.starts.size(), t.events.size() - 2);  // all but the two Place have a cause
  for (const auto& [id, s] : p.starts) EXPECT_LE(s.ts, p.ends.at(id).ts) << id;
  EXPECT_EQ(p.processes.at(1), "a pid 100");
  EXPECT_EQ(p.processes.at(2), "b pid 200");
  std::set<std::string> names;
  for (const auto& [id, name] : p.tracks) names.insert(name);
  EXPECT_TRUE(names.contains("scheduler@a"));
  EXPECT_TRUE(names.contains("engine 2@b"));
  EXPECT_TRUE(names.contains("request 2@b 0000000000000abc"));
  EXPECT_TRUE(names.contains("request 2@b 0000000000000def"));
  EXPECT_EQ(text(p.json.root["otherData"]["gaps"]), "");
}

TEST(Perfetto, StaysWellFormedWhereClocksErr) {
  for (int64_t misjudged : {-2 * ms, -130 * us, 130 * us, 2 * ms})
    check_shape(perfetto(two_requests(misjudged)));
}

TEST(Perfetto, OneRequestAlone) {
  auto t = two_requests();
  perfetto p(t, &t.requests[1]);
  check_shape(p);
  for (element e : p.json.root["traceEvents"].get_array())
    if (text(e["ph"]) == "X") {
      EXPECT_EQ(text(e["args"]["request"]), "0000000000000def");
    }
}

TEST(Perfetto, TellsOfGaps) {
  auto t = two_requests();
  t.gaps.lost.push_back({0, 17});
  perfetto p(t);
  EXPECT_NE(text(p.json.root["otherData"]["gaps"]).find("17 records"), std::string::npos);
}

struct span {
  std::string trace, parent, name;
  uint64_t from = 0, to = 0;
};

std::map<std::pair<std::string, std::string>, span> spans_of(const parsed& json) {
  std::map<std::pair<std::string, std::string>, span> all;
  for (element resource : json.root["resourceSpans"].get_array())
    for (element scope : resource["scopeSpans"].get_array())
      for (element e : scope["spans"].get_array()) {
        span s{.trace = text(e["traceId"]), .name = text(e["name"])};
        std::string id = text(e["spanId"]);
        std::string_view parent;
        if (!e["parentSpanId"].get_string().get(parent)) s.parent = parent;
        s.from = std::stoull(text(e["startTimeUnixNano"]));
        s.to = std::stoull(text(e["endTimeUnixNano"]));
        EXPECT_EQ(s.trace.size(), 32u);
        EXPECT_EQ(id.size(), 16u);
        EXPECT_NE(id, std::string(16, '0'));
        EXPECT_TRUE(all.emplace(std::pair(s.trace, id), s).second) << id;
      }
  return all;
}

TEST(Otlp, HasOneTraceForEachRequestWhoseSpansLeadToItsRoot) {
  auto t = two_requests();
  auto spans = spans_of(parsed(otlp_json(t, nullptr)));
  EXPECT_EQ(spans.size(), t.events.size() + 2);
  std::set<std::string> traces;
  for (const auto& [id, s] : spans) {
    traces.insert(s.trace);
    EXPECT_LE(s.from, s.to);
    EXPECT_GT(s.from, 1'700'000'000'000'000'000u);
    size_t steps = 0;
    for (auto at = s; !at.parent.empty(); ++steps) {
      ASSERT_LT(steps, spans.size()) << "a circle";
      auto parent = spans.find({at.trace, at.parent});
      ASSERT_NE(parent, spans.end()) << at.parent;
      EXPECT_LE(parent->second.from, at.from);
      at = parent->second;
    }
    EXPECT_EQ(steps == 0, s.name == "request");
  }
  EXPECT_EQ(traces.size(), 2u);
}

TEST(Otlp, ParentsAreTheSpansInWhichMessagesWereSent) {
  auto t = two_requests();
  auto spans = spans_of(parsed(otlp_json(t, &t.requests[0])));
  std::multimap<std::string, std::string> parents;
  for (const auto& [id, s] : spans)
    if (!s.parent.empty()) parents.emplace(s.name, spans.at({s.trace, s.parent}).name);
  EXPECT_EQ(parents.find("Place")->second, "request");
  EXPECT_EQ(parents.find("Placed")->second, "Place");
  EXPECT_EQ(parents.count("Submit"), 3u);
  EXPECT_EQ(parents.count("Answer"), 3u);
  for (auto [at, end] = parents.equal_range("Answer"); at != end; ++at)
    EXPECT_EQ(at->second, "Submit");
}

TEST(Otlp, TellsWhatIsMissing) {
  two_hosts w;
  w.whole(1, 0);
  auto all = w.s.gather(5 * ms);
  all.processes[0].lost = 9;
  all.processes[0].records.erase(all.processes[0].records.begin());
  auto text = otlp_json(make_timeline(all), nullptr);
  EXPECT_NE(text.find("lethe.records_lost"), std::string::npos);
  EXPECT_NE(text.find("lethe.messages_without_cause"), std::string::npos);
}

}  // namespace
}  // namespace lethe
