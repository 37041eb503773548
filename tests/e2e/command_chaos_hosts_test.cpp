// A host's process, and the leader's, die under load and come back.
#include <gtest/gtest.h>

#include "tests/e2e/chaos.hpp"

namespace lethe {
namespace {

/// Two hosts on this machine, each a process with an engine of its own; the first leads.
class two_hosts {
 public:
  two_hosts() {
    std::filesystem::create_directory(folder_ / "run");
    ::setenv("XDG_RUNTIME_DIR", (folder_ / "run").c_str(), 1);
    std::string text = lab_config(
        "[engines]\ncount = 2\nplacement = \"spread\"\nthreads = 1\n"
        "[tls]\nfolder = \"keys\"\n[health]\nlost_after_ms = 1500\n");
    text.replace(text.find("127.0.0.1:0"), 11, "127.0.0.1:" + std::to_string(api));
    for (const char* name : {"north", "south"})
      text += std::string("[[hosts]]\nname = \"") + name +
              "\"\nport = " + std::to_string(free_port()) + "\n";
    file = folder_.write("two.toml", text);
    EXPECT_EQ(run_lethe({"keys", "init", file}).exit_code, 0);
    for (const char* name : {"north", "south"}) start(name);
  }
  void start(const std::string& host) {
    running_.erase(host);
    running_.try_emplace(host, host_of{file, host});
  }
  void kill(const std::string& host) { ::kill(running_.at(host).pid, SIGKILL); }
  bool becomes_whole(bool whole, double within_s = 30) const {
    double until = now_s() + within_s;
    while (is_whole(file) != whole && now_s() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return is_whole(file) == whole;
  }
  std::string errors() const {
    return running_.at("north").errors() + running_.at("south").errors();
  }

  const uint16_t api = free_port();
  std::string file;

 private:
  scratch_folder folder_;
  std::map<std::string, running_cluster> running_;
};

/// How many ended so that no fault explains.
size_t unexplained(const std::vector<request_seen>& requests, ending how,
                   const fault_times& explain) {
  return size_t(std::ranges::count_if(requests, [&](const request_seen& r) {
    return r.how == how && !explain.touch(r.begun, r.ended);
  }));
}

TEST(Chaos, AHostAndTheLeaderAreKilledUnderLoadAndComeBack) {
  two_hosts hosts;
  ASSERT_TRUE(hosts.becomes_whole(true)) << hosts.errors();
  clients asking(hosts.api, 4);
  ASSERT_TRUE(asking.are_served(8)) << hosts.errors();
  fault_times any, of_leader;
  for (const char* victim : {"south", "north"}) {
    bool leads = victim == std::string("north");
    double at = now_s();
    hosts.kill(victim);
    ASSERT_TRUE(hosts.becomes_whole(false)) << hosts.errors();
    if (!leads) {
      EXPECT_TRUE(asking.are_served(8)) << "the other host serves\n" << hosts.errors();
    }
    hosts.start(victim);
    ASSERT_TRUE(hosts.becomes_whole(true)) << hosts.errors();
    any.add(at, now_s() + noticed_s);
    if (leads) of_leader.add(at, now_s() + noticed_s);
    EXPECT_TRUE(asking.are_served(8)) << hosts.errors();
  }
  auto requests = asking.end();
  // Only who talks to a process that dies hears nothing, or half of an answer.
  EXPECT_EQ(unexplained(requests, ending::cut, of_leader), 0u);
  EXPECT_EQ(unexplained(requests, ending::unheard, of_leader), 0u);
  EXPECT_EQ(unexplained(requests, ending::lost, any), 0u) << hosts.errors();
  EXPECT_EQ(unexplained(requests, ending::turned_away, any), 0u) << hosts.errors();
  EXPECT_EQ(unexplained(requests, ending::other, fault_times()), 0u);
  EXPECT_EQ(run_lethe({"down", "--cluster", hosts.file}).exit_code, 0);
}

}  // namespace
}  // namespace lethe
