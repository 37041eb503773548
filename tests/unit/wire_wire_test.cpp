// What any peer may send in place of a message: too much, too little, too deep, too often the same.
#include "runtime/wire/wire.hpp"

#include <gtest/gtest.h>

#include <random>

#include "wire_messages.hpp"

namespace lethe {
namespace {

using testing::read_message;

template <class Fill>
wire<schema::EngineState> engine_state(Fill&& fill) {
  return pack<schema::EngineState>({}, fill);
}

/// Words of a message in one segment, with the table before them.
std::vector<std::byte> frame_of_words(std::vector<uint64_t> words) {
  words.insert(words.begin(), uint64_t(words.size()) << 32);
  auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

constexpr uint64_t struct_pointer(int32_t offset, uint16_t data, uint16_t pointers) {
  return uint64_t(uint32_t(offset) << 2) | uint64_t(data) << 32 | uint64_t(pointers) << 48;
}
constexpr uint64_t list_pointer(int32_t offset, uint64_t element, uint64_t count) {
  return uint64_t(uint32_t(offset) << 2 | 1) | element << 32 | count << 35;
}

TEST(Wire, ComesBackAsItWasPacked) {
  auto m = pack<schema::Answer>({.trace = 7, .lamport = 3, .sender = 5, .sent_ns = 9},
                                [](schema::Answer::Builder b) {
                                  b.setRequest(11);
                                  b.setNumber(2);
                                  b.setLast(true);
                                  b.setSealed(data_of(as_bytes("ciphertext")));
                                });
  EXPECT_EQ(m.stamp.trace, 7u);
  EXPECT_EQ(m.frame.size() % sizeof(capnp::word), 0u);
  auto read = unpack(m, [](schema::Answer::Reader r) {
    EXPECT_EQ(r.getRequest(), 11u);
    EXPECT_EQ(r.getNumber(), 2u);
    EXPECT_TRUE(r.getLast());
    EXPECT_EQ(as_text(bytes_of(r.getSealed())), "ciphertext");
  });
  EXPECT_TRUE(read);
}

/// A message that fills a frame of so many bytes with one data field.
wire<schema::Answer> answer_of(size_t frame_bytes) {
  constexpr size_t around = 16 + 8 + 16 + 8 + 8;  // two segments, root, data, pointer, its landing
  std::vector<std::byte> sealed(frame_bytes - around);
  return pack<schema::Answer>({}, [&](schema::Answer::Builder b) { b.setSealed(data_of(sealed)); });
}

TEST(Wire, AFrameIsReadUpToItsSchemasLimitAndNotBeyond) {
  constexpr size_t most = frame_bytes_max<schema::Answer>;
  for (size_t bytes : {most - 8, most}) {
    auto m = answer_of(bytes);
    ASSERT_EQ(m.frame.size(), bytes);
    EXPECT_TRUE(read_message(m)) << bytes;
  }
  auto above = answer_of(most + 8);
  ASSERT_EQ(above.frame.size(), most + 8);
  bool used = false;
  EXPECT_FALSE(unpack(above, [&used](schema::Answer::Reader) { used = true; }));
  EXPECT_FALSE(used);
}

TEST(Wire, LimitsAreThoseOfWhatAMessageCarries) {
  EXPECT_EQ(frame_bytes_max<schema::Place>, size_t{64} << 10);
  EXPECT_GT(frame_bytes_max<schema::Submit>, limits::sealed_request_bytes_max);
  EXPECT_GT(frame_bytes_max<schema::Answer>, limits::chunk_plain_bytes_max + 64);
  EXPECT_EQ(frame_bytes_max<schema::ControlAnswer>, limits::control_bytes_max);
  EXPECT_EQ(frame_bytes_max<schema::ControlAsk>, limits::control_ask_bytes_max);
}

/// Of so many engines, with the histograms of all requests.
wire<schema::Loads> loads_of(uint32_t engines) {
  return pack<schema::Loads>({}, [engines](schema::Loads::Builder b) {
    for (auto load : b.initLoads(engines)) load.setStalledMs(1);
    b.initCounts();
    for (auto h : b.initMeasures().initTimes(7)) h.initCounts(17);
    for (auto h : b.getMeasures().initLengths(2)) h.initCounts(9);
  });
}

// A cluster file allows 256 engines; as many that they replace may still be leaving.
TEST(Wire, WhatGrowsWithEnginesHoldsAsManyAsThereMayBe) {
  EXPECT_TRUE(read_message(loads_of(256)));
  EXPECT_TRUE(read_message(loads_of(2 * 256)));
  EXPECT_FALSE(read_message(loads_of(3 * 256)));
  auto publish = [](uint32_t engines) {
    return pack<schema::Publish>({}, [engines](schema::Publish::Builder b) {
      std::byte key[70] = {};
      for (auto node : b.initNodes(engines)) {
        node.setNode(data_of(key));
        node.setModel(std::string(255, 'm'));
      }
    });
  };
  EXPECT_TRUE(read_message(publish(256)));
  EXPECT_FALSE(read_message(publish(2 * 256)));
  auto start = [](uint32_t ranks) {
    return pack<schema::StartEngine>({}, [ranks](schema::StartEngine::Builder b) {
      auto list = b.initSpec().initEngines().initRanks(ranks);
      for (uint32_t i = 0; i < ranks; ++i) list.set(i, "one-host-of-a-cluster:7");
    });
  };
  EXPECT_TRUE(read_message(start(4096)));
  EXPECT_FALSE(read_message(start(16 * 4096)));
}

TEST(Wire, ATruncatedMessageIsAnErrorOrReadsAsLess) {
  auto whole = engine_state([](schema::EngineState::Builder b) {
    b.setReason("weights: too few bytes");
    b.setModel("tiny");
    std::byte node[64] = {};
    b.setNode(data_of(node));
  });
  ASSERT_TRUE(read_message(whole));
  for (size_t n = 0; n < whole.frame.size(); ++n) {
    auto cut = whole;
    cut.frame.resize(n);
    EXPECT_FALSE(read_message(cut)) << n << " of " << whole.frame.size() << " bytes";
  }
}

TEST(Wire, AnEmptyFrameIsNoMessageOfAnyType) {
  testing::each_type(testing::all_messages{}, []<class Schema>() {
    EXPECT_FALSE(read_message(wire<Schema>{}));
    EXPECT_FALSE(read_message(wire<Schema>{{}, std::vector<std::byte>(7)}));
  });
}

// 4,000 list elements that all point to the same 4 KiB: 16 MiB of reading in a frame of 36 KiB.
TEST(Wire, AMessageThatPointsToTheSameAgainAndAgainIsRefused) {
  constexpr uint32_t pointers = 4000, text_words = 512;
  std::vector<uint64_t> words{struct_pointer(0, 1, 1), uint64_t{3} /* changes */,
                              list_pointer(0, 6, pointers)};
  for (uint32_t i = 0; i < pointers; ++i)
    words.push_back(list_pointer(int32_t(pointers - 1 - i), 2, text_words * 8));
  for (uint32_t i = 0; i < text_words; ++i)
    words.push_back(i + 1 == text_words ? 0x0061616161616161 : 0x6161616161616161);
  wire<schema::ControlAnswer> bomb{{}, frame_of_words(words)};
  auto read = read_message(bomb);
  EXPECT_FALSE(read) << *read << " read of a frame of " << bomb.frame.size() << " bytes";
  // The same with few of them is what an honest sender may send.
  words[2] = list_pointer(0, 6, 4);
  EXPECT_TRUE(read_message(wire<schema::ControlAnswer>{{}, frame_of_words(words)}));
}

// A list of 500 million elements of no bytes: a frame of 24 bytes.
TEST(Wire, AListOfNothingIsNotReadForEver) {
  constexpr uint64_t most = (uint64_t{1} << 29) - 1;
  std::vector<uint64_t> words{struct_pointer(0, 1, 1), 3, list_pointer(0, 0, most)};
  EXPECT_FALSE(read_message(wire<schema::ControlAnswer>{{}, frame_of_words(words)}));
  words = {struct_pointer(0, 0, 2), list_pointer(1, 7, 0), 0,
           uint64_t(most << 2) /* tag: so many structs of no words */};
  EXPECT_FALSE(read_message(wire<schema::Loads>{{}, frame_of_words(words)}));
}

// A far pointer that lands on itself, on another far pointer, outside, in a segment that is not.
TEST(Wire, AFarPointerLeadsNowhereWithoutHarm) {
  auto far = [](uint32_t word, uint32_t segment, bool two = false) {
    return uint64_t{2} | uint64_t(two) << 2 | uint64_t(word) << 3 | uint64_t(segment) << 32;
  };
  auto read = [](uint64_t root, uint64_t pad) {
    return read_message(wire<schema::EngineState>{{}, frame_of_words({root, pad})});
  };
  for (uint64_t root : {far(0, 0), far(0, 0, true), far(1, 0), far(1, 0, true), far(2, 0),
                        far(0x1fffffff, 0), far(0, 1), far(0, 0xffffffff)})
    for (uint64_t pad : {far(0, 0), far(1, 0, true), struct_pointer(0x1fffffff, 0xffff, 0xffff)})
      EXPECT_FALSE(read(root, pad)) << std::hex << root << " " << pad;
  EXPECT_TRUE(read(far(1, 0), struct_pointer(-2, 1, 0)));  // an honest one
}

TEST(Wire, ASegmentTableThatLiesIsRefused) {
  auto frame = engine_state([](auto b) { b.setSlot(1); }).frame;
  for (uint32_t segments : {1u, 2u, 511u, 512u, 0x7fffffffu, 0xffffffffu})
    for (uint32_t words : {0u, 1u, 2u, 0x1fffffffu, 0xffffffffu}) {
      auto lie = frame;
      uint32_t table[2] = {segments, words};
      std::memcpy(lie.data(), table, sizeof table);
      EXPECT_FALSE(read_message(wire<schema::EngineState>{{}, lie})) << segments << " " << words;
    }
}

// Honest messages are three deep; this one has a config in a config in a config.
TEST(Wire, NestingHasAnEnd) {
  constexpr int depth = 64;
  std::vector<uint64_t> words;
  for (int i = 0; i < depth; ++i) words.push_back(struct_pointer(0, 0, 1));
  words.push_back(0);
  int reached = 0;
  wire<schema::EngineState> deep{{}, frame_of_words(words)};
  auto read = wire_detail::with_reader(deep.frame, &reached, [](void* n, capnp::MessageReader& m) {
    auto at = m.getRoot<capnp::AnyStruct>();
    while (true) {
      ++*static_cast<int*>(n);
      auto pointers = at.getPointerSection();
      if (pointers.size() == 0) return;
      at = pointers[0].getAs<capnp::AnyStruct>();
    }
  });
  EXPECT_FALSE(read);
  EXPECT_GT(reached, 4);
  EXPECT_LE(reached, 17);
}

/// One honest message of each type, with something in every text and list that it has.
void fill(capnp::DynamicStruct::Builder b, int depth) {
  for (auto field : b.getSchema().getFields()) {
    auto type = field.getType();
    if (type.isText()) {
      b.set(field, "some text");
    } else if (type.isData()) {
      b.init(field, 40);
    } else if (type.isStruct() && depth > 0) {
      fill(b.init(field).as<capnp::DynamicStruct>(), depth - 1);
    } else if (type.isList() && depth > 0) {
      auto list = b.init(field, 2).as<capnp::DynamicList>();
      auto element = type.asList().getElementType();
      for (unsigned i = 0; i < 2; ++i) {
        if (element.isStruct()) fill(list[i].as<capnp::DynamicStruct>(), depth - 1);
        if (element.isText()) list.set(i, "an element");
      }
    }
  }
}

// Whatever bytes turn into, reading all of it ends, and soon.
TEST(Wire, RandomMutationsOfEveryMessageAreReadOrRefused) {
  std::mt19937_64 random(4711);
  uint64_t good = 0, refused = 0;
  testing::each_type(testing::all_messages{}, [&]<class Schema>() {
    auto honest = pack<Schema>(
        {}, [](typename Schema::Builder b) { fill(capnp::DynamicStruct::Builder(b), 4); });
    ASSERT_TRUE(read_message(honest));
    for (int i = 0; i < 1500; ++i) {
      auto m = honest;
      for (uint64_t changes = 1 + random() % 6; changes > 0; --changes) {
        size_t at = random() % m.frame.size();
        switch (random() % 4) {
          case 0:
            m.frame[at] ^= std::byte(1u << random() % 8);
            break;
          case 1:
            m.frame[at] = std::byte(random());
            break;
          case 2:  // a word of it elsewhere: mostly pointers that point wrong
            std::memcpy(m.frame.data() + at / 8 * 8,
                        m.frame.data() + random() % m.frame.size() / 8 * 8, 8);
            break;
          default:
            m.frame.resize(std::max<size_t>(8, random() % m.frame.size() / 8 * 8));
        }
      }
      auto read = read_message(m);
      read ? ++good : ++refused;
      // What may be followed is eight times the frame; a field or bit list's element is no byte.
      EXPECT_LT(read ? *read : 0, 64 * 8 * (m.frame.size() + 64));
    }
  });
  EXPECT_GT(good, 1000u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace lethe
