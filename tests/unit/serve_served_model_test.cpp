#include "runtime/serve/served_model.hpp"
#include "tests/places.hpp"
#include "tests/unit/hollow_model.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace lethe {
namespace {

namespace fs = std::filesystem;

/// Whether somebody asks to stop before a quarter of a minute is over.
bool asks_to_stop(const std::stop_token& stop) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  while (!stop.stop_requested() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return stop.stop_requested();
}

TEST(ReadWhileLoading, WhatCantBeReadStopsTheLoading) {
  auto [read, loaded] =
      read_while_loading([]() -> result<int> { return fail("no words"); },
                         [](std::stop_token stop) -> result<bool> { return asks_to_stop(stop); });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.why().text, "no words");
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(*loaded);
}

/// What is reported is every 16 MiB, of 160.
TEST(ReadWhileLoading, WeightsStopWhenAskedTo) {
  const test::temporary_folder folder;
  testing::write_hollow(folder);
  auto from = checkpoint::open(folder.path());
  ASSERT_TRUE(from) << from.why().text;
  for (uint32_t threads : {1u, 3u}) {
    std::stop_source asked;
    uint32_t reports = 0, last = UINT32_MAX;
    load_options how{.threads = threads,
                     .progress =
                         [&](uint64_t, uint64_t) {
                           if (++reports == last) asked.request_stop();
                         },
                     .stop = asked.get_token()};
    ASSERT_TRUE(load_weights(*from, "", how));
    EXPECT_GT(std::exchange(reports, 0), 3u);
    last = 2;
    auto stopped = load_weights(*from, "", how);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.why().text, "loading was stopped");
    EXPECT_EQ(reports, 2u) << "it went on";
  }
}

TEST(ReadWhileLoading, BothGoOnTogether) {
  std::atomic<bool> reads = false, loads = false;
  auto waits_for = [](const std::atomic<bool>& other) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
    while (!other && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return other.load();
  };
  auto [read, loaded] = read_while_loading(
      [&]() -> result<bool> {
        reads = true;
        return waits_for(loads);
      },
      [&](std::stop_token stop) -> result<bool> {
        loads = true;
        return waits_for(reads) && !stop.stop_requested();
      });
  EXPECT_TRUE(*read);
  EXPECT_TRUE(*loaded);
}

/// A copy of the tiny model's folder.
struct own_folder : test::temporary_folder {
  own_folder() { fs::copy(fs::path(places::source) / "models" / "tiny", path()); }
};

TEST(ServedModel, OpensWordsAndWeights) {
  own_folder own;
  auto made = served_model::open({.path = own.path(), .threads = 2});
  ASSERT_TRUE(made) << made.why().text;
  EXPECT_EQ((*made)->name, own.path().filename());
  EXPECT_NE((*made)->weights, nullptr);
  EXPECT_EQ((*made)->file, nullptr);
  EXPECT_EQ((*made)->trie->size(), (*made)->words.vocab_size());
}

TEST(ServedModel, OnDevicesTheWeightsStayWhereTheyLie) {
  own_folder own;
  auto made = served_model::open({.path = own.path(), .on_devices = true});
  ASSERT_TRUE(made) << made.why().text;
  EXPECT_EQ((*made)->weights, nullptr);
  ASSERT_NE((*made)->file, nullptr);
  EXPECT_EQ(&(*made)->forms(), &(*made)->file->weights());
}

TEST(OpenTemplate, TakesWordsThatAreOpen) {
  own_folder own;
  auto words = open_tokenizer(own.path());
  ASSERT_TRUE(words);
  auto alone = open_template(own.path());
  ASSERT_TRUE(alone) << alone.why().text;
  own.write("tokenizer.json", "{");
  EXPECT_FALSE(open_template(own.path()));
  auto beside = open_template(own.path(), *words);
  ASSERT_TRUE(beside) << beside.why().text;
  EXPECT_EQ(beside->bos_token, alone->bos_token);
  EXPECT_EQ(beside->eos_token, alone->eos_token);
  EXPECT_EQ(beside->tools, alone->tools);
}

/// The same reason, however far the weights are.
TEST(ServedModel, ABrokenTokenizerIsTheReason) {
  own_folder own;
  own.write("tokenizer.json", "{\"model\": 3");
  auto alone = open_tokenizer(own.path());
  ASSERT_FALSE(alone);
  for (const char* quantize : {"", "q8_0", "q9"}) {
    auto made = served_model::open({.path = own.path(), .quantize = quantize, .threads = 2});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.why().text, alone.why().text);
  }
}

TEST(ServedModel, RefusedWeightsAreTheReasonWhereWordsAreThere) {
  own_folder own;
  auto made = served_model::open({.path = own.path(), .quantize = "q9", .threads = 2});
  ASSERT_FALSE(made);
  EXPECT_NE(made.why().text.find("q9"), std::string::npos) << made.why().text;
}

}  // namespace
}  // namespace lethe
