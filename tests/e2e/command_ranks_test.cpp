// Engines whose ranks are processes: they say what one process says, and of one that is killed, or
// stops, nobody hears but the engine's own requests.
#include <gtest/gtest.h>

#include "tests/e2e/ranks.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

std::string ranks_config(const std::string& engines, const std::string& more = {}) {
  return "name = \"ranks\"\nprofile = \"lab\"\n[model]\nname = \"tiny\"\npath = \"" +
         std::string(places::source) +
         "/models/ember\"\n[listen]\napi = \"127.0.0.1:0\"\n[batching]\nkv_memory = \"16 MiB\"\n" +
         "[engines]\nthreads = 1\n" + engines + more;
}

/// Which memory a process has mapped as weights.
std::string weights_of(pid_t p) {
  std::istringstream maps(read_file("/proc/" + std::to_string(p) + "/maps"));
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, mode, offset, device, inode, name;
    words >> range >> mode >> offset >> device >> inode >> name;
    if (name.starts_with("/memfd:lethe-weights")) return inode;
  }
  return {};
}

std::vector<std::string> said_by(const running_cluster& c) { return said_at(c.port("api")); }

TEST(Ranks, AsProcessesSayWhatOneProcessSays) {
  std::vector<std::string> expected;
  {
    running_cluster c(ranks_config(""));
    ASSERT_TRUE(c.tells("ready: 1 of 1")) << c.errors();
    expected = said_by(c);
  }
  for (auto [tensor, pipeline] : {std::pair(2, 1), {1, 2}, {2, 2}, {4, 1}}) {
    SCOPED_TRACE(std::to_string(tensor) + " x " + std::to_string(pipeline));
    running_cluster c(ranks_config("processes = \"ranks\"\ntensor = " + std::to_string(tensor) +
                                   "\npipeline = " + std::to_string(pipeline) + "\n"));
    ASSERT_TRUE(c.tells("ready: 1 of 1")) << c.errors();
    EXPECT_EQ(ranks_of(c).size(), size_t(tensor * pipeline - 1)) << "the engine's own is one";
    EXPECT_EQ(said_by(c), expected);
    auto ranks = ranks_of(c);
    const auto weights = weights_of(processes_of(c, "engine-process").at(0));
    EXPECT_NE(weights, "");
    for (pid_t p : ranks) EXPECT_EQ(weights_of(p), weights) << "a second copy";
    EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
    EXPECT_EQ(c.wait(), 0) << c.errors();
    for (pid_t p : ranks) EXPECT_TRUE(eventually([p] { return is_gone(p); }));
  }
}

/// Of two engines of two ranks each, one loses a rank under load.
class LostRank : public testing::TestWithParam<int> {};

TEST_P(LostRank, EndsItsEngineWhichBeginsAnewAndTheOtherServesOn) {
  running_cluster c(ranks_config("count = 2\ntensor = 2\nprocesses = \"ranks\"\n",
                                 "[health]\nrank_ms = 1000\nrestart_ms = 100\n"));
  ASSERT_TRUE(c.tells("ready: 2 of 2")) << c.errors();
  ASSERT_EQ(ranks_of(c).size(), 2u);
  load clients(c.port("api"), 4, 60);
  ASSERT_TRUE(eventually([&] { return clients.seen.whole > 20; }));
  const pid_t lost = ranks_of(c).at(0);
  const auto engines = processes_of(c, "engine-process");
  ::kill(lost, GetParam());
  EXPECT_TRUE(eventually([&] {
    auto now = processes_of(c, "engine-process");
    return now.size() == 2 && now != engines && ranks_of(c).size() == 2;
  })) << c.errors();
  EXPECT_TRUE(eventually([&] { return is_gone(lost); })) << "a stopped one is killed, too";
  EXPECT_TRUE(eventually([&] {
    return run_lethe({"status", "--cluster", c.file}).out.find("2 of 2") != std::string::npos;
  })) << c.errors();
  const uint64_t before = clients.seen.whole;
  EXPECT_TRUE(eventually([&] { return clients.seen.whole > before + 20; }));
  clients.end();
  EXPECT_EQ(clients.seen.cut + clients.seen.other, 0u);
  EXPECT_NE(c.errors().find("rank"), std::string::npos) << c.errors();
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
  EXPECT_EQ(c.wait(), 0) << c.errors();
}

INSTANTIATE_TEST_SUITE_P(Ranks, LostRank, testing::Values(SIGKILL, SIGSTOP));

TEST(Ranks, StatusSaysWhichOneWasLost) {
  running_cluster c(
      ranks_config("tensor = 2\nprocesses = \"ranks\"\n", "[health]\nrestarts = 0\n"));
  ASSERT_TRUE(c.tells("ready: 1 of 1")) << c.errors();
  ::kill(ranks_of(c).at(0), SIGKILL);
  EXPECT_TRUE(c.tells("parked")) << c.errors();
  auto status = run_lethe({"status", "--cluster", c.file}).out;
  EXPECT_NE(status.find("rank 1"), std::string::npos) << status;
}

TEST(Ranks, AreNoCommandForPeople) {
  std::vector<std::string> words{"rank-process", "1"};
  for (const char* key : {"--certificate", "--key", "--authority"})
    words.insert(words.end(), {key, "/dev/null"});
  EXPECT_EQ(run_lethe(words).exit_code, 1);
}

}  // namespace
}  // namespace lethe
