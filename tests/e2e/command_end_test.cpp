// A process that is told to end does, whatever in it never comes back.
#include <gtest/gtest.h>

#include "tests/e2e/cluster.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

TEST(End, IsBoundedWhereSomethingNeverEnds) {
#ifdef LETHE_SANITIZED
  GTEST_SKIP() << "a sanitizer wants to be loaded first itself";
#endif
  ::setenv("LD_PRELOAD", places::stuck_library, 1);
  running_cluster c(lab_config("[engines]\ncount = 1\nprocesses = \"separate\"\n"));
  ::unsetenv("LD_PRELOAD");
  ASSERT_TRUE(c.tells("ready: 1 of 1")) << c.errors();
  for (int signals = 0; signals < 2; ++signals) {  // the second doesn't wait for the engine
    ::kill(c.pid, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_EQ(c.wait(), 0) << c.errors();
  EXPECT_NE(c.errors().find("something here does not end"), std::string::npos) << c.errors();
}

}  // namespace
}  // namespace lethe
