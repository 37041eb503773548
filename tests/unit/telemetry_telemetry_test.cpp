// What a serving process says while it runs is an event of the schema and numbers: nothing else
// compiles, and nothing else is printed.
#include <capnp/schema.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <thread>

#include "runtime/config/annotations.hpp"
#include "runtime/telemetry/telemetry_log.hpp"

namespace lethe {
namespace {

using schema::Event;

template <class... Values>
concept can_be_told = requires(Values... values) {
  telemetry_event(Event::READY, values...);
};

// Texts, and what could carry one piece by piece, are refused by the compiler.
static_assert(!can_be_told<std::string>);
static_assert(!can_be_told<const std::string&>);
static_assert(!can_be_told<std::string_view>);
static_assert(!can_be_told<const char*>);
static_assert(!can_be_told<char*>);
static_assert(!can_be_told<char[8]>);
static_assert(!can_be_told<const std::byte*>);
static_assert(!can_be_told<std::vector<std::byte>>);
static_assert(!can_be_told<void*>);
static_assert(!can_be_told<char>);
static_assert(!can_be_told<unsigned char>);
static_assert(!can_be_told<char32_t>);
static_assert(!can_be_told<wchar_t>);
static_assert(!can_be_told<double>);
static_assert(!can_be_told<capnp::Text::Reader>);
static_assert(!can_be_told<uint32_t, std::string>);
static_assert(!can_be_told<uint32_t, uint32_t, uint32_t, uint32_t>);
// Nor is there a way to say anything but an event.
template <class T>
concept can_be_said = requires(telemetry_log& log, T what) {
  log.say(what);
};
static_assert(!can_be_said<std::string> && !can_be_said<const char*> && !can_be_said<int>);
// The control: what is meant to be told can be.
static_assert(can_be_told<> && can_be_told<uint32_t, uint16_t, uint64_t>);
static_assert(can_be_told<int, schema::Part, schema::End> && can_be_told<schema::Fault>);
static_assert(can_be_said<telemetry_event>);

const telemetry_names names{.cluster = "home", .model = "ember", .hosts = {"north", "south"}};

TEST(Telemetry, SaysTheSchemasWordsWithNumbersInTheirPlaces) {
  EXPECT_EQ(rendered(telemetry_event(Event::READY, 2u, 3u), names),
            "ready: 2 of 3 engines serve ember");
  EXPECT_EQ(rendered(telemetry_event(Event::RELAY_READY), names), "ready: home serves as relay");
  EXPECT_EQ(
      rendered(telemetry_event(Event::ENGINE_PARKED, 7u, 1u, schema::End::BROKE_BAD_ALLOC), names),
      "engine 7 on south: parked: it broke: std::bad_alloc");
  EXPECT_EQ(rendered(telemetry_event(Event::ENGINE_READY, 7u, 2u), names),
            "engine 7 on a host that came later: ready");
  EXPECT_EQ(rendered(telemetry_event(Event::NOT_JOINED, schema::Fault::OTHER_PROCESS, 1u), names),
            "not joined: another process serves as host south");
  EXPECT_EQ(rendered(telemetry_event(Event::OUTPUT_LOST, 28), names),
            "standard output can't be written: No space left on device");
  EXPECT_EQ(
      rendered(telemetry_event(Event::ENGINE_LOADED, 0u, uint64_t{512} << 20, uint64_t{1} << 30),
               names),
      "engine 0: 512.0 MiB of 1.0 GiB loaded");
  EXPECT_EQ(rendered(telemetry_event(Event(999)), names), "?");
}

TEST(Telemetry, NamesComeFromTheFileAlone) {
  EXPECT_EQ(names.place_of("south"), 1u);
  EXPECT_EQ(names.place_of("west"), 2u);
  EXPECT_EQ(names.place_of(""), 2u);
}

TEST(Telemetry, EachEventHasWordsAndRoomForItsNumbers) {
  std::set<std::string> seen;
  for (auto e : capnp::Schema::from<Event>().getEnumerants()) {
    telemetry_event event(Event(e.getOrdinal()), 1u, 1u, 1u);
    auto text = rendered(event, names);
    EXPECT_TRUE(seen.insert(text).second || event.what() == Event::DOWN) << text;
    EXPECT_EQ(text.find_first_of("{}?\n"), text.npos) << text;
    EXPECT_LE(numbers_of(event.what()), telemetry_event::numbers_max);
    EXPECT_TRUE(text.size() > 3 && text.size() <= 160) << text;
  }
}

TEST(Telemetry, NumbersOfAnySizeMakeALine) {
  constexpr uint64_t sizes[] = {0, 1, 7, 255, 65535, UINT32_MAX, UINT64_MAX};
  for (uint16_t e = 0; e < 64; ++e)
    for (uint64_t a : sizes)
      for (uint64_t b : sizes) {
        auto text = rendered(telemetry_event(Event(e), a, b, a), names);
        EXPECT_TRUE(!text.empty() && text.size() <= 200) << text;
        EXPECT_EQ(text.find_first_of("{}\n"), text.npos) << text;
      }
}

TEST(Telemetry, AReasonIsTheLongestEndThatItBeginsWith) {
  using schema::End;
  EXPECT_EQ(end_named(""), End::OTHER);
  EXPECT_EQ(end_named("it broke: std::bad_alloc"), End::BROKE_BAD_ALLOC);
  EXPECT_EQ(end_named("it broke: Qwaxolibrunt"), End::BROKE);
  EXPECT_EQ(end_named("its supervisor: it broke: std::bad_alloc"), End::SUPERVISOR_BROKE_BAD_ALLOC);
  EXPECT_EQ(end_named("its process was ended by signal 9 (Killed)"), End::SIGNAL);
  EXPECT_EQ(end_named("Qwaxolibrunt: no such file"), End::OTHER);
  for (auto e : capnp::Schema::from<End>().getEnumerants()) {
    auto text = rendered(telemetry_event(Event::ENGINE_PARKED, 0u, 0u, End(e.getOrdinal())), names);
    EXPECT_EQ(text.find("Qwaxolibrunt"), text.npos);
    EXPECT_EQ(text.find('?'), text.npos) << text;
  }
}

/// No field of any schema's telemetry can hold a text.
TEST(Telemetry, ItsRecordsHaveNoText) {
  for (auto field : capnp::Schema::from<schema::TelemetryRecord>().getFields()) {
    auto type = field.getType();
    while (type.isList()) type = type.asList().getElementType();
    EXPECT_FALSE(type.isText() || type.isData() || type.isStruct() || type.isAnyPointer());
  }
}

TEST(TelemetryDeathTest, WhatNobodyCaughtSaysNothingOfItself) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto throws = [] { std::thread([] { throw std::runtime_error("Qwaxolibrunt"); }).join(); };
  EXPECT_DEATH((end_quietly_when_uncaught(), throws()),
               "^lethe: ended by an exception that nobody caught\n$");
  EXPECT_DEATH(throws(), "Qwaxolibrunt") << "the control: the library's own words";
  EXPECT_EQ(rendered(telemetry_event(Event::UNCAUGHT), names),
            "ended by an exception that nobody caught");
}

}  // namespace
}  // namespace lethe
