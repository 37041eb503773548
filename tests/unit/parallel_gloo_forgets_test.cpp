#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gtest/gtest.h>

#include <random>

#include "parallel/gloo_transport.hpp"
#include "runtime/base/wipe.hpp"
#include "tests/unit/memory_search.hpp"
#include "tests/unit/parallel_gloo_group.hpp"
#include "tests/unit/parallel_link_proxy.hpp"

namespace {

std::atomic<size_t> allocations = 0;

}  // namespace

// Counts what a call takes from the heap. Not inlined: g++ 12 would see half of a pair.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* at = std::malloc(bytes)) return at;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, size_t) noexcept { std::free(at); }

// What is left of activations after a group, and what a link shows of them.

namespace lethe::testing {
namespace {

using test::count_everywhere;
using test::needle;

/// Activations that occur nowhere else; wiped where they are when they die.
class marked {
 public:
  explicit marked(size_t count, bool zeroes = false) : floats_(count) {
    std::mt19937 random(uint32_t(count) + 17);
    for (float& x : floats_) x = zeroes ? 0 : 1 + std::ldexp(float(random() % 8'000'000), -23);
  }
  ~marked() { wipe(floats_.data(), floats_.size() * 4); }
  std::span<float> floats() { return floats_; }
  std::span<std::byte> bytes() { return std::as_writable_bytes(floats()); }
  /// Eight floats of somewhere.
  needle at(size_t i) const { return needle(std::as_bytes(std::span(floats_).subspan(i, 8))); }

 private:
  std::vector<float> floats_;
};

std::vector<needle> needles_of(size_t count) {
  marked m(count);
  return {m.at(0), m.at(count / 3), m.at(count - 8)};
}

size_t left_of(const std::vector<needle>& all) {
  size_t found = 0;
  for (const needle& n : all) found += count_everywhere(n);
  return found;
}

/// Everything that moves activations, once. The sums are rank 0's floats.
void use(communicator& c, size_t count) {
  marked x(count, c.rank() != 0);
  std::vector<communicator::extent> parts(c.size());
  for (size_t r = 0; r < c.size(); ++r)
    parts[r] = {count * r / c.size(), count * (r + 1) / c.size() - count * r / c.size()};
  ASSERT_TRUE(c.broadcast(x.bytes(), 0));
  ASSERT_TRUE(c.rank() != 0 || c.send(x.bytes(), 1));
  ASSERT_TRUE(c.rank() != 1 || c.recv(x.bytes(), 0));
  ASSERT_TRUE(c.flush());
  ASSERT_TRUE(c.all_gather(x.floats(), parts));
  ASSERT_TRUE(c.reduce_scatter(x.floats(), parts));
  marked again(count, c.rank() != 0);
  ASSERT_TRUE(c.all_reduce(again.floats()));
}

class GlooForgets : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Links, GlooForgets, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Protected" : "Sealed"; });

TEST_P(GlooForgets, AllActivationsWithTheGroup) {
#ifdef LETHE_SANITIZED
  GTEST_SKIP() << "a sanitizer keeps what was freed";
#endif
  for (uint32_t ranks : {2, 3})
    for (size_t count : {16, 1024, 16'384, 300'000}) {
      auto needles = needles_of(count);
      ASSERT_EQ(left_of(needles), 0u);
      auto ends = make_gloo_group(ranks, GetParam());
      on_all(ranks, [&](uint32_t r) { use(*ends[r], count); });
      // The control: until it is wiped, scratch holds what was added.
      EXPECT_GT(left_of(needles), 0u) << ranks << " ranks, " << count;
      ends.clear();
      EXPECT_EQ(left_of(needles), 0u) << ranks << " ranks, " << count;
    }
}

TEST_P(GlooForgets, ActivationsOfAStepWhenItIsToldTo) {
  for (uint32_t ranks : {2, 5})
    for (size_t count : {16, 5000, 300'000}) {
      auto ends = make_gloo_group(ranks, GetParam());
      auto zero = [](std::byte b) { return b == std::byte{0}; };
      on_all(ranks, [&](uint32_t r) { use(*ends[r], count); });
      for (auto& end : ends) {
        EXPECT_EQ(std::ranges::all_of(end->scratch(), zero), end->rank() == 0);
        end->wipe();
        EXPECT_TRUE(std::ranges::all_of(end->scratch(), zero)) << ranks << " ranks, " << count;
      }
    }
}

/// A group of Gloo's own kind over our links.
struct gloos_own {
  gloos_own(uint32_t rank, rank_store& store)
      : door(*link_door::open(*link_address::parse("127.0.0.1", 0))),
        over(*mesh::make(
            {.terms = {.name = "own", .rank = rank, .size = 2, .secret = secret_of(1)}})),
        device(std::make_shared<link_device>(*over, *door, until())),
        context(std::make_shared<gloo::rendezvous::Context>(int(rank), 2)) {
    struct : gloo::rendezvous::Store {
      rank_store* real;
      void set(const std::string& key, const std::vector<char>& data) override {
        check(bool(real->set(key, std::as_bytes(std::span(data)))));
      }
      std::vector<char> get(const std::string& key) override {
        auto value = real->get(key, until());
        auto* at = reinterpret_cast<const char*>(value->data());
        return {at, at + value->size()};
      }
      void wait(const std::vector<std::string>&) override {}
    } adapter;
    adapter.real = &store;
    context->connectFullMesh(adapter, device);
  }
  static deadline until() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

  std::unique_ptr<link_door> door;
  std::unique_ptr<mesh> over;
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::rendezvous::Context> context;
};

/// Why sums are not left to Gloo: it is a good transport for it, and it leaves activations behind.
TEST(GlooItself, AddsOverOurLinksButLeavesActivationsInFreedMemory) {
#ifdef LETHE_SANITIZED
  GTEST_SKIP() << "a sanitizer keeps what was freed";
#endif
  constexpr size_t count = 4096;
  auto needles = needles_of(count);
  memory_rank_store store;
  on_all(2, [&](uint32_t r) {
    gloos_own end(r, store);
    marked x(count, r != 0), want(count);
    gloo::AllreduceOptions options(end.context);
    options.setOutput(x.floats().data(), count);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
    EXPECT_TRUE(std::ranges::equal(x.floats(), want.floats()));
  });
  EXPECT_GT(left_of(needles), 0u);
}

/// Whether somebody on the link between two ranks sees activations there.
bool link_shows(bool protected_link) {
  memory_rank_store store;
  changing_store of_one(store);
  link_proxy proxy;
  proxy.stand_between(of_one);
  on_all(2, [&](uint32_t r) {
    rank_store& mine = r == 0 ? static_cast<rank_store&>(store) : of_one;
    auto end = gloo_communicator::join(gloo_rank(r, 2, protected_link), mine);
    ASSERT_TRUE(end) << end.why().text;
    use(**end, 40'000);
  });
  blob seen = proxy.seen();
  EXPECT_GT(seen.size(), size_t{40'000} * 4 * 4);
  size_t found = 0;
  for (const needle& n : needles_of(40'000))
    found += n.count_in(seen.data(), seen.data() + seen.size());
  return found != 0;
}

TEST(GlooCapture, ShowsNoActivation) { EXPECT_FALSE(link_shows(false)); }
TEST(GlooCapture, ShowsThemWhereTheConfigCallsItProtected) { EXPECT_TRUE(link_shows(true)); }

TEST_P(GlooForgets, NothingOnTheHeapByTakingNothingFromIt) {
  auto ends = make_gloo_group(3, GetParam());
  std::vector<communicator::extent> parts{{0, 300}, {300, 300}, {600, 400}};
  std::vector<float> small[3], large[3], message[3];
  for (int r = 0; r < 3; ++r) small[r].resize(1000), large[r].resize(40'000), message[r].resize(9);
  auto once = [&](uint32_t r) {
    communicator& c = *ends[r];
    bool good = c.all_reduce(small[r]) && c.all_reduce(large[r]) && c.barrier() &&
                c.all_gather(small[r], parts) && c.reduce_scatter(small[r], parts) &&
                c.broadcast(std::as_writable_bytes(std::span(small[r])), 1) &&
                c.send(std::as_bytes(std::span(message[r])), (r + 1) % 3) &&
                c.recv(std::as_writable_bytes(std::span(message[r])), (r + 2) % 3) && c.flush();
    ASSERT_TRUE(good);
  };
  size_t before = 0;
  on_all(3, [&](uint32_t r) {
    for (int i = 0; i < 20; ++i) {
      once(r);
      if (i != 9) continue;
      EXPECT_TRUE(ends[r]->barrier());
      if (r == 0) before = allocations;
      EXPECT_TRUE(ends[r]->barrier());
    }
    EXPECT_TRUE(ends[r]->barrier());
    if (r == 0) {
      EXPECT_EQ(allocations, before);
    }
    EXPECT_TRUE(ends[r]->barrier());
  });
}

}  // namespace
}  // namespace lethe::testing
