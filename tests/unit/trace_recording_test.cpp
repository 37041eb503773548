// Recordings: what they hold, what they cannot hold, and what is refused as one.
#include <capnp/schema.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "runtime/trace/message_names.hpp"
#include "runtime/trace/trace_limits.hpp"
#include "schemas/recording.capnp.h"
#include "tests/places.hpp"
#include "trace_story.hpp"

namespace lethe {
namespace {

namespace fs = std::filesystem;

class Recording : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "lethe-trace-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    file = folder / "r";
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string refusal() {
    auto read = read_recording(file);
    return read ? "" : read.why().text;
  }
  fs::path folder, file;
};

gathered sample() {
  two_hosts w(7 * ms, 20 * us, 5 * us);
  w.whole(0xabc, 0);
  auto all = w.s.gather(5 * ms);
  all.processes[0].lost = 4;
  all.processes.push_back({.host = "c"});
  return all;
}

TEST_F(Recording, ComesBackWhole) {
  auto all = sample();
  ASSERT_TRUE(write_recording(file, all));
  auto back = read_recording(file);
  ASSERT_TRUE(back) << back.why().text;
  EXPECT_EQ(back->unix_ns, all.unix_ns);
  ASSERT_EQ(back->processes.size(), 3u);
  for (size_t p = 0; p < 3; ++p) {
    const auto &a = all.processes[p], &b = back->processes[p];
    EXPECT_EQ(std::tie(a.host, a.pid, a.mode, a.lost, a.now_ns, a.offset_ns, a.error_ns),
              std::tie(b.host, b.pid, b.mode, b.lost, b.now_ns, b.offset_ns, b.error_ns));
    ASSERT_EQ(a.records.size(), b.records.size());
    for (size_t i = 0; i < a.records.size(); ++i) {
      const auto &x = a.records[i], &y = b.records[i];
      EXPECT_EQ(std::tie(x.at_ns, x.trace, x.lamport, x.sender, x.receiver, x.type, x.queued_ns,
                         x.handled_ns, x.bytes),
                std::tie(y.at_ns, y.trace, y.lamport, y.sender, y.receiver, y.type, y.queued_ns,
                         y.handled_ns, y.bytes));
    }
  }
  EXPECT_LT(back->processes[0].records.back().queued_ns, 0);  // b's clock is ahead of a's
  EXPECT_FALSE(back->processes[2].answered());
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

/// What a recording can hold beyond numbers, by the names of the fields that hold it.
void pointers_of(capnp::StructSchema schema, std::vector<std::string>& found) {
  for (auto field : schema.getFields()) {
    auto type = field.getType();
    std::string name =
        std::string(schema.getShortDisplayName().cStr()) + "." + field.getProto().getName().cStr();
    if (type.isList() && type.asList().getElementType().isStruct())
      pointers_of(type.asList().getStructElementType(), found);
    else if (type.isStruct())
      pointers_of(type.asStruct(), found);
    else if (type.isText() || type.isData() || type.isList() || type.isAnyPointer() ||
             type.isInterface())
      found.push_back(name);
  }
}

TEST(RecordingContent, IsNumbersAndTheNamesOfHosts) {
  std::vector<std::string> found;
  pointers_of(capnp::Schema::from<schema::Recording>(), found);
  EXPECT_EQ(found, std::vector<std::string>{"TraceRecords.host"});
}

// The negative control: the same walk finds what carries a request.
TEST(RecordingContent, TheSameWalkFindsSealedBytes) {
  std::vector<std::string> found;
  pointers_of(capnp::Schema::from<schema::Submit>(), found);
  EXPECT_EQ(found, std::vector<std::string>({"Submit.sealed", "Submit.token"}));
}

TEST_F(Recording, WhatIsNoneIsRefused) {
  EXPECT_NE(refusal(), "");  // no file
  for (std::string bytes : {"", "short", "LetheTr2 and more that follows", "LetheTr1abcdefg"}) {
    std::ofstream(file, std::ios::trunc) << bytes;
    EXPECT_NE(refusal().find("no recording"), std::string::npos) << bytes << ": " << refusal();
  }
}

TEST_F(Recording, CutShortOrChangedItIsRefusedOrReadAndNeverCrashes) {
  ASSERT_TRUE(write_recording(file, sample()));
  auto size = fs::file_size(file);
  std::ifstream in(file, std::ios::binary);
  std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (size_t cut = 0; cut + 8 < size; cut += 24) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << whole.substr(0, cut);
    EXPECT_NE(refusal(), "") << cut;
  }
  uint64_t random = 1;
  for (int i = 0; i < 500; ++i) {
    std::string changed = whole;
    for (int j = 0; j < 4; ++j) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      changed[8 + (random >> 33) % (changed.size() - 8)] = char(random >> 24);
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc) << changed;
    if (auto read = read_recording(file)) make_timeline(*std::move(read));
  }
}

TEST_F(Recording, ItsSizeIsBounded) {
  ASSERT_TRUE(write_recording(file, sample()));
  for (int above : {-1, 0}) {
    fs::resize_file(file, limits::recording_bytes_max + above);
    EXPECT_EQ(refusal(), "") << above;
  }
  fs::resize_file(file, limits::recording_bytes_max + 1);
  EXPECT_NE(refusal().find("at most"), std::string::npos);
}

TEST_F(Recording, WhatACommandCanGatherFitsAFile) {
  gathered all{.processes = {{.host = "a", .pid = 1, .now_ns = 1}}};
  all.processes[0].records.resize(limits::trace_records_max);
  ASSERT_TRUE(write_recording(file, all));
  EXPECT_LT(fs::file_size(file), limits::control_bytes_max);
  auto back = read_recording(file);
  ASSERT_TRUE(back) << back.why().text;
  EXPECT_EQ(back->processes[0].records.size(), limits::trace_records_max);
}

TEST_F(Recording, TimesThatNoClockShowsAreRefused) {
  constexpr int64_t most = int64_t{1} << 60;
  auto with = [&](auto&& change) {
    auto all = sample();
    change(all.processes[0], all.processes[0].records[0]);
    EXPECT_TRUE(write_recording(file, all));
    return refusal();
  };
  EXPECT_EQ(with([](auto&, auto& r) { r.at_ns = uint64_t(most); }), "");
  EXPECT_NE(with([](auto&, auto& r) { r.at_ns = uint64_t(most) + 1; }), "");
  EXPECT_EQ(with([](auto&, auto& r) { r.queued_ns = -most; }), "");
  EXPECT_NE(with([](auto&, auto& r) { r.queued_ns = -most - 1; }), "");
  EXPECT_NE(with([](auto&, auto& r) { r.queued_ns = INT64_MIN; }), "");
  EXPECT_NE(with([](auto&, auto& r) { r.handled_ns = UINT64_MAX; }), "");
  EXPECT_NE(with([](auto& p, auto&) { p.offset_ns = INT64_MIN; }), "");
  EXPECT_NE(with([](auto& p, auto&) { p.error_ns = uint64_t(most) + 1; }), "");
  EXPECT_NE(with([](auto& p, auto&) { p.now_ns = UINT64_MAX; }), "");
}

TEST_F(Recording, AHostsNameCannotSteerTheTerminal) {
  auto all = sample();
  all.processes[0].host = "a\x1b[2J\n" + std::string(1000, 'x');
  ASSERT_TRUE(write_recording(file, all));
  auto back = read_recording(file);
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->processes[0].host.starts_with("a?[2J?xxx"));
  EXPECT_EQ(back->processes[0].host.size(), 253u);
}

TEST(Tracer, WhatDoesNotFitAnAnswerIsCountedAsLost) {
  for (size_t most : {2u, 3u, 4u}) {
    tracer::dump d{.records = {{.at_ns = 1}, {.at_ns = 2}, {.at_ns = 3}}, .lost = 10};
    d.keep_newest(most);
    EXPECT_EQ(d.records.size(), std::min<size_t>(most, 3));
    EXPECT_EQ(d.lost, most == 2 ? 11u : 10u);
    EXPECT_EQ(d.records.back().at_ns, 3u);  // the oldest go
  }
}

TEST(MessageNames, EveryMessageThatActorsMayTellHasOne) {
  std::ifstream in(std::string(places::source) + "/actors/cluster/messages.hpp");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  std::regex added("CAF_ADD_TYPE_ID\\(lethe_messages, \\(lethe::wire<lethe::schema::(\\w+)>\\)\\)");
  size_t found = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), added), end; at != end; ++at, ++found)
    EXPECT_TRUE(std::ranges::any_of(message_types(), [&](const message_type& m) {
      return m.name == (*at)[1].str();
    })) << (*at)[1];
  EXPECT_EQ(found, message_types().size());
  EXPECT_EQ(message_name(capnp::typeId<schema::Submit>()), "Submit");
  EXPECT_EQ(message_name(0x12ab), "0x00000000000012ab");
}

}  // namespace
}  // namespace lethe
