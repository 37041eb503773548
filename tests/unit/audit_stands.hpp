#pragma once

#include <gtest/gtest.h>

#include "runtime/audit/finding.hpp"

namespace lethe::audit {

/// Says all of it where it does not stand.
inline ::testing::AssertionResult stands(const finding& f) {
  auto all = f.stands() ? ::testing::AssertionSuccess() : ::testing::AssertionFailure();
  all << f.what << ": " << f.measured << "; bound: " << f.bound << "; note: " << f.note;
  for (const auto& c : f.controls)
    all << "\n  " << (c.found ? "found" : "NOT FOUND") << ", without " << c.without << ": "
        << c.measured;
  return all;
}

}  // namespace lethe::audit
