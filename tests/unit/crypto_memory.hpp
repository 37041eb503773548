#pragma once

#include "crypto_samples.hpp"
#include "memory_search.hpp"

namespace lethe::test {

struct named_needle {
  const char* name;
  needle value;
};

class memory_search : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(LETHE_SANITIZED)
    GTEST_SKIP() << "the sanitizers' shadow memory is too large to search";
#endif
  }
};

}  // namespace lethe::test
