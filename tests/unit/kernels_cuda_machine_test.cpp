#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "tests/cuda/guarded.hpp"
#include "tests/cuda/machine.hpp"

// Planted mistakes that a GPU would show now and then, or never: the machine must name each.

namespace lethe {
namespace {

using device::launch_shape;
using emulated::machine;
using emulated::order;

/// A body made of a function of the block.
template <uint32_t count, class F>
struct body_of {
  static constexpr uint32_t threads = count;
  F f;
  uint32_t shared_words;
  launch_shape shape() const { return {2, 1, shared_words}; }
  template <class Block>
  void operator()(Block& block) const {
    f(block);
  }
};

template <uint32_t threads = 64, class F>
std::string fault_of(F f, order o = order::forwards, uint32_t shared_words = 64) {
  machine m(o);
  device_error error = m.launch(body_of<threads, F>{f, shared_words});
  EXPECT_EQ(error, m.fault().empty() ? 0 : emulated::launch_failed);
  return m.fault();
}

void expect_fault(const std::string& fault, const std::string& what) {
  EXPECT_NE(fault.find(what), std::string::npos) << fault;
  EXPECT_NE(fault.find("kernels_cuda_machine_test.cpp:"), std::string::npos) << fault;
}

constexpr order all_orders[] = {order::forwards, order::backwards, order::shuffled};

TEST(CudaMachine, RunsWhatIsRight) {
  for (order o : all_orders) {
    std::vector<float> sums(64);
    EXPECT_EQ(fault_of(
                  [&](auto& block) {
                    uint32_t t = block.thread();
                    block.put(t, float(t));
                    block.barrier();
                    float sum = block.get(63 - t);
                    for (uint32_t m = 16; m > 0; m /= 2) sum += block.shuffle_xor(sum, m);
                    sums[t] = sum;
                  },
                  o),
              "");
    for (uint32_t t = 0; t < 64; t++) EXPECT_EQ(sums[t], t < 32 ? 1520.0f : 496.0f);
  }
}

/// The last to write wins, as in memory that two threads or two blocks write.
uint32_t last_of(order o, uint32_t seed) {
  uint32_t last = 0;
  auto write = [&](auto& block) { last = block.x() * 64 + block.thread(); };
  machine m(o, seed);
  EXPECT_EQ(m.launch(body_of<64, decltype(write)>{write, 0}), 0);
  return last;
}

TEST(CudaMachine, TakesThreadsAndBlocksInTheOrderAskedFor) {
  EXPECT_EQ(last_of(order::forwards, 1), 127u);
  EXPECT_EQ(last_of(order::backwards, 1), 0u);
  std::set<uint32_t> last;
  for (uint32_t seed = 0; seed < 20; seed++) last.insert(last_of(order::shuffled, 10 * seed));
  EXPECT_GT(last.size(), 10u);
  EXPECT_LT(*last.begin(), 64u);
  EXPECT_GE(*last.rbegin(), 64u);
}

TEST(CudaMachine, FindsAMissingBarrier) {
  for (order o : all_orders) {
    expect_fault(fault_of(
                     [](auto& block) {
                       block.put(block.thread(), 1.0f);
                       block.get((block.thread() + 1) % 64);
                     },
                     o),
                 "a shared word that");
  }
}

TEST(CudaMachine, FindsAMissingBarrierBeforeWordsAreUsedAgain) {
  for (order o : all_orders) {
    expect_fault(fault_of(
                     [](auto& block) {
                       block.put(block.thread(), 1.0f);
                       block.barrier();
                       block.get((block.thread() + 1) % 64);
                       block.put(block.thread(), 2.0f);
                     },
                     o),
                 "a shared word that another thread has");
  }
}

TEST(CudaMachine, FindsTwoThatWriteOneWord) {
  expect_fault(fault_of([](auto& block) { block.put(block.thread() / 2, 1.0f); }),
               "another thread has written");
}

TEST(CudaMachine, FindsABarrierThatSomeDoNotReach) {
  for (order o : all_orders) {
    expect_fault(fault_of(
                     [](auto& block) {
                       if (block.thread() != 40) block.barrier();
                     },
                     o),
                 "a barrier without all threads");
  }
}

TEST(CudaMachine, FindsThreadsAtDifferentBarriers) {
  expect_fault(fault_of([](auto& block) {
                 if (block.thread() < 32) {
                   block.barrier();
                 } else {
                   block.barrier();
                 }
               }),
               "a barrier without all threads");
}

TEST(CudaMachine, FindsAShuffleWithoutAllLanes) {
  for (order o : all_orders) {
    expect_fault(fault_of(
                     [](auto& block) {
                       if (block.thread() != 3) block.shuffle_xor(1.0f, 1);
                     },
                     o),
                 "a shuffle without all lanes");
  }
  expect_fault(fault_of<48>([](auto& block) { block.shuffle_xor(1.0f, 1); }),
               "a shuffle without all lanes");
  expect_fault(fault_of([](auto& block) { block.shuffle_xor(1.0f, 32); }),
               "a lane of another warp");
}

/// The word of a matrix of rows of K that mma.sync wants of a lane, byte by byte as its documents
/// say where each number lies.
template <class Number>
uint32_t word_at(const std::vector<Number>& rows, uint32_t depth, uint32_t row, uint32_t k) {
  uint32_t word;
  std::memcpy(&word, &rows[row * depth + k], sizeof word);
  return word;
}

/// Small whole numbers, whose products and sums every type holds exactly.
template <device::product_type T, class Number, class Make>
void expect_products(order o, Make number) {
  constexpr device::product_facts facts = device::facts_of(T);
  constexpr uint32_t depth = facts.depth, n = facts.per_word;
  std::mt19937 random(7);
  std::vector<int> a(16 * depth), b(8 * depth), c(16 * 8);
  for (auto* numbers : {&a, &b, &c})
    for (int& v : *numbers) v = int(random() % 200) - 100;
  std::vector<Number> rows(a.size()), columns(b.size());
  for (size_t i = 0; i < a.size(); i++) rows[i] = number(a[i]);
  for (size_t i = 0; i < b.size(); i++) columns[i] = number(b[i]);
  std::vector<double> got(16 * 8);
  auto multiply = [&](auto& block) {
    uint32_t lane = block.thread() % 32, g = lane / 4, t = lane % 4;
    device::product_rows<T> x;
    device::product_columns<T> y;
    device::product_sums<T> sums;
    for (uint32_t w = 0; w < facts.a_words; w++)
      x.a[w] = word_at(rows, depth, g + w % 2 * 8, w / 2 * depth / 2 + n * t);
    for (uint32_t w = 0; w < facts.b_words; w++)
      y.b[w] = word_at(columns, depth, g, w * depth / 2 + n * t);
    auto place = [&](uint32_t i) { return (g + i / 2 * 8) * 8 + 2 * t + i % 2; };
    for (uint32_t i = 0; i < 4; i++) sums.c[i] = device::product_number<T>(c[place(i)]);
    sums = block.template multiply<T>(x, y, sums);
    for (uint32_t i = 0; i < 4; i++) got[place(i)] = double(sums.c[i]);
  };
  EXPECT_EQ(fault_of(multiply, o), "");
  for (uint32_t r = 0; r < 16; r++) {
    for (uint32_t column = 0; column < 8; column++) {
      int sum = c[r * 8 + column];
      for (uint32_t k = 0; k < depth; k++) sum += a[r * depth + k] * b[column * depth + k];
      EXPECT_EQ(got[r * 8 + column], sum) << r << " " << column;
    }
  }
}

TEST(CudaMachine, MultipliesSmallMatrices) {
  using device::product_type;
  for (order o : all_orders) {
    expect_products<product_type::s8, int8_t>(o, [](int v) { return int8_t(v); });
    expect_products<product_type::s8_half, int8_t>(o, [](int v) { return int8_t(v); });
    expect_products<product_type::bf16, uint16_t>(o,
                                                  [](int v) { return device::to_bf16(float(v)); });
    // The low bits are not looked at.
    expect_products<product_type::tf32, uint32_t>(
        o, [](int v) { return device::bits_of(float(v)) | 0x1fff; });
  }
}

TEST(CudaMachine, FindsAProductWithoutAllLanes) {
  using device::product_type;
  auto multiply = [](auto& block) {
    if (block.thread() == 3) return;
    block.template multiply<product_type::s8>({}, {}, {});
  };
  for (order o : all_orders) expect_fault(fault_of(multiply, o), "a product without all lanes");
  expect_fault(fault_of([](auto& block) {
                 if (block.thread() % 2 == 0) {
                   block.template multiply<product_type::bf16>({}, {}, {});
                 } else {
                   block.template multiply<product_type::tf32>({}, {}, {});
                 }
               }),
               "a product without all lanes");
}

TEST(CudaMachine, FindsSharedWordsThatTheLaunchDoesNotHave) {
  expect_fault(fault_of([](auto& block) { block.put(block.thread() + 1, 1.0f); }),
               "a shared word that the launch does not have");
  expect_fault(fault_of([](auto& block) { block.get_two(block.thread() + 1); }),
               "not aligned to two");
  expect_fault(fault_of([](auto& block) { block.get_four(block.thread() + 2); }),
               "not aligned to four");
}

TEST(CudaMachine, FindsSharedWordsThatNobodyWrote) {
  expect_fault(fault_of([](auto& block) {
                 if (block.x() == 0) block.put(block.thread(), 1.0f);
                 block.barrier();
                 block.get(block.thread());
               }),
               "nobody has written");
}

/// What copies come from: each thread's four words, twice.
alignas(16) constexpr auto copied = [] {
  std::array<uint32_t, 512> words{};
  for (uint32_t i = 0; i < words.size(); i++) words[i] = 7 * i;
  return words;
}();

TEST(CudaMachine, CopiesToSharedWords) {
  for (order o : all_orders) {
    std::vector<uint32_t> got(128);
    auto copy = [&](auto& block) {
      uint32_t t = block.thread();
      block.copy_four(4 * t, &copied[4 * t]);
      block.copies_asked();
      block.copy_word(256 + t, &copied[256 + t]);
      block.copies_asked();
      block.template copies_there<1>();
      block.barrier();
      got[t] = block.get_word(4 * (63 - t) + 3);
      block.template copies_there<0>();
      block.barrier();
      got[64 + t] = block.get_word(256 + 63 - t);
    };
    EXPECT_EQ(fault_of(copy, o, 320), "");
    for (uint32_t t = 0; t < 64; t++) {
      EXPECT_EQ(got[t], 7 * (4 * (63 - t) + 3));
      EXPECT_EQ(got[64 + t], 7 * (256 + 63 - t));
    }
  }
}

TEST(CudaMachine, FindsWordsThatAreUsedWhileTheyAreCopied) {
  auto fault = [](auto then) {
    return fault_of(
        [then](auto& block) {
          uint32_t t = block.thread();
          for (uint32_t i = 0; i < 2; i++) {
            block.copy_four(4 * t + 256 * i, &copied[4 * t]);
            block.copies_asked();
          }
          then(block, 4 * t);
          block.template copies_there<0>();
        },
        order::forwards, 512);
  };
  EXPECT_EQ(fault([](auto&, uint32_t) {}), "");
  const char* said = "a shared word that is being copied";
  expect_fault(fault([](auto& block, uint32_t at) { block.get(at); }), said);
  expect_fault(fault([](auto& block, uint32_t at) { block.put(at + 3, 1.0f); }), said);
  expect_fault(fault([](auto& block, uint32_t at) { block.copy_four(at, &copied[0]); }), said);
  // The last batch isn't there when the one before is, nor what no batch has.
  auto last = [](auto& block, uint32_t at) {
    block.template copies_there<1>();
    block.get(at);
    block.get(at + 256);
  };
  expect_fault(fault(last), said);
  auto in_no_batch = [](auto& block, uint32_t at) {
    block.template copies_there<0>();
    block.copy_four(at, &copied[0]);
    block.template copies_there<0>();
    block.get(at);
  };
  expect_fault(fault(in_no_batch), said);
}

TEST(CudaMachine, FindsMissingBarriersAroundCopies) {
  for (order o : all_orders) {
    expect_fault(fault_of(
                     [](auto& block) {
                       block.copy_word(block.thread(), &copied[block.thread()]);
                       block.copies_asked();
                       block.template copies_there<0>();
                       block.get((block.thread() + 1) % 64);
                     },
                     o),
                 "a shared word that");
    expect_fault(fault_of(
                     [](auto& block) {
                       block.put(block.thread(), 1.0f);
                       block.barrier();
                       block.get((block.thread() + 1) % 64);
                       block.copy_word(block.thread(), &copied[block.thread()]);
                       block.copies_asked();
                       block.template copies_there<0>();
                     },
                     o),
                 "a shared word that another thread has");
  }
}

TEST(CudaMachine, FindsCopiesThatNobodyWaitedFor) {
  expect_fault(fault_of([](auto& block) {
                 block.copy_word(block.thread(), &copied[0]);
                 block.copies_asked();
               }),
               "a copy that nobody waited for");
}

TEST(CudaMachine, FindsCopiesThatAreNotAligned) {
  const char* said = "a copy that is not aligned";
  expect_fault(fault_of([](auto& block) { block.copy_four(0, &copied[1]); }), said);
  expect_fault(fault_of([](auto& block) { block.copy_four(2, &copied[0]); }), said);
  auto* inside = reinterpret_cast<const std::byte*>(copied.data()) + 2;
  expect_fault(fault_of([inside](auto& block) { block.copy_word(0, inside); }), said);
  expect_fault(fault_of([](auto& block) { block.copy_four(64, &copied[0]); }), "does not have");
}

TEST(CudaMachine, RefusesMoreSharedWordsThanADeviceHas) {
  machine m;
  auto nothing = [](auto&) {};
  body_of<32, decltype(nothing)> most{nothing, device::shared_words_most}, more = most;
  more.shared_words++;
  EXPECT_EQ(m.launch(most), 0);
  EXPECT_EQ(m.launch(more), emulated::invalid_value);
}

TEST(CudaMachine, GoesOnAfterAFault) {
  std::string first = fault_of([](auto& block) { block.put(64, 1.0f); });
  expect_fault(first, "does not have");
  EXPECT_EQ(fault_of([](auto& block) { block.barrier(); }), "");
}

TEST(CudaMachineDeathTest, EndsAtMemoryOutsideOfABuffer) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto outside = [](int64_t offset) {
    auto* p = static_cast<std::byte*>(emulated::take(100));
    fault_of([p, offset](auto& block) {
      if (block.thread() == 5) p[offset] = std::byte{1};
    });
    emulated::give(p, 100);
  };
  EXPECT_DEATH(outside(100), "");
  EXPECT_DEATH(outside(-1), "");
  EXPECT_DEATH(outside(-4096), "");
  outside(0);
  outside(99);
}

}  // namespace
}  // namespace lethe
