#include <gtest/gtest.h>

#include <cstring>

#include "parallel/kv_pool.hpp"
#include "tests/unit/kernels_attend_paged.hpp"

namespace lethe {
namespace {

constexpr uint32_t layers = 2, kv_heads = 2, head_dim = 20, page_tokens = 16;

/// A page of tokens of one's own in each layer and head, and what it takes as rows.
struct filled_pool {
  kv_pool pool;
  kv_type type;

  explicit filled_pool(kv_type t)
      : pool(*kv_pool::make({layers, kv_heads, head_dim, page_tokens, t}, 2)), type(t) {
    for (uint32_t i = 0; i < layers * kv_heads; i++) {
      std::vector<float> k = normal_floats(page_tokens * head_dim, 2 * i);
      std::vector<float> v = normal_floats(page_tokens * head_dim, 2 * i + 1);
      best_cpu_row().kv_store(view(i, 0), 0, page_tokens, k.data(), v.data(), head_dim);
    }
  }
  kv_view view(uint32_t i, uint32_t page) const {
    static constexpr uint32_t ids[] = {0, 1};
    return pool.view(i / kv_heads, i % kv_heads, ids + page);
  }
  std::vector<std::byte> rows(uint32_t i, uint32_t page, bool keys) const {
    kv_view v = view(i, page);
    const std::byte* from = v.pool + page * v.page_bytes + (keys ? v.key_offset : v.value_offset);
    std::vector<std::byte> all(from, from + page_tokens * kv_row_bytes(type, head_dim));
    make_rows(type, head_dim, page_tokens, keys, all.data());
    return all;
  }
};

TEST(KvPool, CopiesTheTokensItIsToldAndNothingBehindThem) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    for (uint32_t tokens : {1u, 5u, 16u}) {
      filled_pool filled(type);
      filled.pool.copy({.from = 0, .to = 1, .tokens = tokens});
      for (uint32_t i = 0; i < layers * kv_heads; i++) {
        for (bool keys : {false, true}) {
          std::vector<std::byte> want = filled.rows(i, 0, keys);
          std::fill(want.begin() + tokens * kv_row_bytes(type, head_dim), want.end(), std::byte{0});
          EXPECT_EQ(filled.rows(i, 1, keys), want) << int(type) << ' ' << tokens << ' ' << keys;
        }
      }
    }
  }
}

TEST(KvPool, PagesOfALayerAndHeadLieSideBySide) {
  filled_pool filled(kv_type::f32);
  for (uint32_t i = 0; i < layers * kv_heads; i++) {
    bytes_view first = filled.pool.piece(i, 0), second = filled.pool.piece(i, 1);
    EXPECT_EQ(first.data() + first.size(), second.data());
    EXPECT_EQ(first.size(), size_t{2} * page_tokens * head_dim * sizeof(float));
  }
}

TEST(KvPool, WipesWhatWasWrittenOfAPageAndNoOther) {
  filled_pool filled(kv_type::bf16);
  auto zeros = [&](uint32_t page) {
    size_t count = 0;
    for (uint32_t i = 0; i < layers * kv_heads; i++)
      count += size_t(std::ranges::count(filled.pool.piece(i, page), std::byte{0}));
    return count;
  };
  const size_t whole = layers * kv_heads * filled.pool.piece(0, 0).size();
  filled.pool.wipe(0);
  EXPECT_LT(zeros(0), whole / 8) << "the control: nobody said that it was written";
  filled.pool.copy({.from = 0, .to = 1, .tokens = page_tokens});
  const size_t copied = zeros(1);
  for (uint32_t page : {0u, 1u}) filled.pool.touch(page);
  filled.pool.wipe(0);
  EXPECT_EQ(zeros(0), whole);
  EXPECT_EQ(zeros(1), copied);
}

}  // namespace
}  // namespace lethe
