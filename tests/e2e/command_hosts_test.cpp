// Several hosts: each a network namespace on one switch, the built program on every one of them.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include "tests/e2e/hosts.hpp"
#include "tests/e2e/stranger.hpp"

namespace lethe {
namespace {

using std::chrono::milliseconds;

using Hosts = hosts_test;

/// Tokens that the engines of a host have made.
uint64_t generated_on(const std::string& status, const std::string& host) {
  json_answer json(status);
  uint64_t all = 0;
  if (!json.valid) return all;
  for (auto e : json.root["engines"].get_array())
    if (std::string_view(e["host"].get_string().value_unsafe()) == host)
      all += e["generated"].get_uint64().value_unsafe();
  return all;
}

TEST_F(Hosts, TwoAnswerAsOneProcessDoesAndShareTheLoad) {
  const std::vector<std::string> prompts = {"The answer is", "Once upon a time", "1 2 3", "a"};
  std::vector<std::string> alone;
  {
    running_cluster one(lab_config("[engines]\ncount = 1\n"));
    ASSERT_TRUE(one.tells("ready: 1 of 1")) << one.errors();
    for (const auto& p : prompts)
      alone.push_back(text_of(http_ask(one.port("api"), "/v1/completions",
                                       R"({"model":"tiny","temperature":0,"ignore_eos":true,)"
                                       R"("max_tokens":24,"prompt":")" +
                                           p + "\"}")));
  }
  ::setenv("XDG_RUNTIME_DIR", (folder_ / "run").c_str(), 1);
  auto path = file("two.toml", config({"north", "south"}, 2));
  up(path, "north");
  up(path, "south");
  ASSERT_TRUE(host("north").tells("ready: 2 of 2")) << host("north").errors();
  {
    auto busy = clients(2);  // so that the others find now this host free, now that one
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_GE(alone[i].size(), 8u) << alone[i];
      for (int again = 0; again < 6; ++again) EXPECT_EQ(text_of(ask(prompts[i])), alone[i]);
    }
    busy->end();
    EXPECT_EQ(busy->seen.retryable + busy->seen.cut + busy->seen.other, 0u);
  }
  std::string said;
  EXPECT_TRUE(eventually([&] {
    said = status(path);
    return generated_on(said, "north") > 24 * 6 && generated_on(said, "south") > 24 * 6;
  })) << said;
  EXPECT_EQ(run_lethe({"down", "--cluster", path}).exit_code, 0);
  EXPECT_EQ(host("north").wait(), 0) << host("north").errors();
  EXPECT_EQ(host("south").wait(), 0) << host("south").errors();
}

TEST_F(Hosts, OneThatIsCutOffIsLostAndComesBack) {
  auto path = file("two.toml", config({"north", "south"}, 2, 2000));
  up(path, "north");
  up(path, "south");
  ASSERT_TRUE(host("north").tells("ready: 2 of 2")) << host("north").errors();
  auto busy = clients(8);
  std::this_thread::sleep_for(milliseconds(300));
  // Packets that are lost for less than lost_after_ms are sent again.
  ASSERT_EQ(machine("south").cable(false), "");
  std::this_thread::sleep_for(milliseconds(200));
  ASSERT_EQ(machine("south").cable(true), "");
  std::this_thread::sleep_for(milliseconds(1000));
  EXPECT_TRUE(is_whole(path)) << status(path);
  EXPECT_EQ(busy->seen.retryable, 0u);
  ASSERT_EQ(machine("south").cable(false), "");
  EXPECT_TRUE(eventually([&] { return !joined(path, "south"); })) << status(path);
  auto said = status(path);
  EXPECT_NE(said.find("\"reason\":\"its host was lost\""), std::string::npos) << said;
  EXPECT_TRUE(eventually([&] { return busy->seen.retryable > 0; })) << "nothing ran there";
  std::this_thread::sleep_for(milliseconds(500));
  // From here on nobody notices.
  uint64_t lost = busy->seen.retryable, whole = busy->seen.whole;
  EXPECT_TRUE(eventually([&] { return busy->seen.whole > whole + 20; }));
  EXPECT_EQ(busy->seen.retryable, lost);
  EXPECT_EQ(ask("The answer is").status, 200);
  ASSERT_EQ(machine("south").cable(true), "");
  EXPECT_TRUE(eventually([&] { return is_whole(path) && joined(path, "south"); }))
      << status(path) << host("north").errors() << host("south").errors();
  busy->end();
  std::printf("%llu whole, %llu retryable; slowest %d ms\n",
              (unsigned long long)busy->seen.whole.load(),
              (unsigned long long)busy->seen.retryable.load(), busy->seen.slowest_ms.load());
  EXPECT_EQ(busy->seen.cut, 0u);
  EXPECT_EQ(busy->seen.other, 0u);
}

/// LETHE_CHAOS_SECONDS says how long (default 4).
TEST_F(Hosts, ACableThatComesAndGoesIsMendedInTheEnd) {
  const char* asked = std::getenv("LETHE_CHAOS_SECONDS");
  auto path = file("two.toml", config({"north", "south"}, 2, 1000));
  up(path, "north");
  up(path, "south");
  ASSERT_TRUE(host("north").tells("ready: 2 of 2")) << host("north").errors();
  auto busy = clients(4);
  std::mt19937 random(4711);
  auto begun = test_clock::now();
  std::chrono::duration<double> lasts(asked ? std::atof(asked) : 4);
  for (bool in = false; test_clock::now() - begun < lasts; in = !in) {
    ASSERT_EQ(machine("south").cable(in), "");
    std::this_thread::sleep_for(milliseconds(20 + random() % (random() % 3 ? 400 : 2500)));
  }
  ASSERT_EQ(machine("south").cable(true), "");
  EXPECT_TRUE(eventually([&] { return joined(path, "south") && is_whole(path); }))
      << status(path) << host("south").errors();
  busy->end();
  EXPECT_EQ(busy->seen.cut + busy->seen.other, 0u);
}

/// Nothing but a TLS alert may be said to one who speaks no TLS.
bool is_silent(const heard& h) {
  return h.bytes.empty() || (h.bytes.front() == '\x15' && h.bytes.size() <= 7);
}

/// In TLS: the connection stood, not a byte was said, and it ended.
bool is_turned_away(const heard& h) { return h.reached && h.hung_up && h.bytes.empty(); }

TEST_F(Hosts, AStrangerGetsNowhere) {
  auto path = file("two.toml", config({"north", "south", "west"}, 2));
  up(path, "north");
  up(path, "south");
  ASSERT_TRUE(host("north").tells("ready: 2 of 2")) << host("north").errors();
  auto busy = clients(4);
  const std::string to = machine("north").address, keys = folder_ / "keys";
  // Another authority, the same names; and a host that the file names no more.
  std::filesystem::create_directory(folder_ / "other");
  auto other = folder_.write("other/two.toml", config({"north", "south", "west"}, 2));
  ASSERT_EQ(run_lethe({"keys", "init", other}).exit_code, 0);
  auto more = config({"north", "south", "west"}, 2);
  file("more.toml", more.replace(more.find("\"west\""), 6, "\"gone\""));

  const auto& west = machine("west");
  auto plainly = [&](const std::string& words) {
    return west.on([&] { return say_plainly(to, port, words); });
  };
  auto in_tls = [&](const std::string& folder, const std::string& name) {
    return west.on([&] { return say_in_tls(to, port, folder, name); });
  };
  std::string hello(32, '\0');  // as CAF begins where there is no TLS
  hello[0] = 1;
  for (const auto& words :
       {std::string("GET / HTTP/1.1\r\n\r\n"), hello, std::string(20000, 'x')}) {
    auto said = plainly(words);
    EXPECT_TRUE(said.reached && said.hung_up && is_silent(said)) << said.bytes.size();
  }
  EXPECT_TRUE(is_turned_away(in_tls(keys, ""))) << "no certificate";
  EXPECT_TRUE(is_turned_away(in_tls(folder_ / "other/keys", "west"))) << "another authority's";
  EXPECT_TRUE(is_turned_away(in_tls(keys, "gone"))) << "a host that the file does not name";
  EXPECT_NE(in_tls(keys, "west").bytes, "") << "the right one is spoken to: the control";

  auto& liar = up(other, "west");
  ASSERT_TRUE(liar.tells("not joined: ")) << liar.errors();
  std::this_thread::sleep_for(milliseconds(700));
  EXPECT_FALSE(joined(path, "west")) << status(path);
  ::kill(liar.pid, SIGTERM);
  EXPECT_EQ(liar.wait(), 0) << liar.errors();
  EXPECT_TRUE(up(path, "west").tells("joined, led by")) << host("west").errors();
  EXPECT_TRUE(eventually([&] { return joined(path, "west"); })) << status(path);
  busy->end();
  EXPECT_GT(busy->seen.whole, 10u);
  EXPECT_EQ(busy->seen.retryable + busy->seen.cut + busy->seen.other, 0u);
}

TEST_F(Hosts, StrangersWhoSayNothingKeepNobodyOut) {
  auto path = file("two.toml", config({"north", "south", "west"}, 2));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few{.rlim_cur = 160, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  up(path, "north");
  ::setrlimit(RLIMIT_NOFILE, &before);
  up(path, "south");
  ASSERT_TRUE(host("north").tells("ready: 2 of 2")) << host("north").errors();
  std::vector<int> silent;
  machine("west").on([&] {
    for (int i = 0; i < 150; ++i) {
      silent.push_back(connect_to(machine("north").address, port));
      ::send(silent.back(), "\x16\x03\x01", size_t(i % 4), MSG_NOSIGNAL);
    }
  });
  EXPECT_TRUE(up(path, "west").tells("joined, led by")) << host("west").errors();
  EXPECT_EQ(ask("The answer is").status, 200);
  for (int fd : silent) ::close(fd);
}

TEST_F(Hosts, AnotherHostCannotPassForTheLeader) {
  auto path = file("two.toml", config({"north", "south", "west"}, 2));
  // With west's own key, where north should be, and it would have south.
  std::string text = config({"west", "south"}, 1);
  auto at = text.find(machine("west").address);
  text.replace(at, machine("west").address.size(), machine("north").address);
  auto fake = file("fake.toml", "name = \"fake\"\n" + text);
  up(fake, "west", "north");
  ASSERT_TRUE(host("west").tells("ready: 1 of 1")) << host("west").errors();
  up(path, "south");
  EXPECT_TRUE(host("south").tells("not joined: ")) << host("south").errors();
  std::this_thread::sleep_for(milliseconds(700));
  EXPECT_EQ(host("south").errors().find("joined, led by"), std::string::npos);
  EXPECT_EQ(run_lethe({"down", "--now", "--cluster", fake}).exit_code, 0);
  up(path, "north");
  EXPECT_TRUE(host("south").tells("joined, led by")) << host("south").errors();
}

TEST_F(Hosts, AnotherHostsCertificateIsRefusedBeforeAnythingStarts) {
  auto path = file("two.toml", config({"north", "south"}, 2));
  std::filesystem::copy_file(folder_ / "keys/north.crt", folder_ / "keys/south.crt",
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(folder_ / "keys/north.key", folder_ / "keys/south.key",
                             std::filesystem::copy_options::overwrite_existing);
  auto refused = run_lethe({"up", path, "--host", "south"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("certificate of north, this is host south"), std::string::npos)
      << refused.err;
}

TEST_F(Hosts, OneIsAddedAndTakenAwayWhileItServes) {
  auto one = file("one.toml", config({"north"}, 1));
  auto three = file("three.toml", config({"north", "west", "south"}, 3));
  auto two = file("two.toml", config({"north", "south"}, 2));
  up(one, "north");
  ASSERT_TRUE(host("north").tells("ready: 1 of 1")) << host("north").errors();
  auto busy = clients(4);
  // It comes before the leader has heard of it, and knocks until it is let in.
  ASSERT_TRUE(up(three, "west").tells("not joined: ")) << host("west").errors();
  EXPECT_FALSE(joined(one, "west"));
  auto look = run_lethe({"apply", three, "--look"});
  EXPECT_NE(look.out.find("hosts[west]: added"), std::string::npos) << look.out << look.err;
  finished applied;
  std::thread apply([&] { applied = run_lethe({"apply", three, "--patience", "30"}); });
  EXPECT_TRUE(host("west").tells("joined, led by")) << host("west").errors();
  up(three, "south");  // and this one after
  apply.join();
  EXPECT_EQ(applied.exit_code, 0) << applied.out << applied.err;
  EXPECT_NE(applied.out.find("3 of 3 ready"), std::string::npos) << applied.out;
  EXPECT_TRUE(eventually([&] { return generated_on(status(one), "west") > 0; }));

  applied = run_lethe({"apply", two, "--patience", "30"});
  EXPECT_EQ(applied.exit_code, 0) << applied.out << applied.err;
  EXPECT_NE(applied.out.find("hosts[west]: removed"), std::string::npos) << applied.out;
  EXPECT_EQ(host("west").wait(), 0) << host("west").errors();
  EXPECT_EQ(status(one).find("west"), std::string::npos) << status(one);
  EXPECT_TRUE(is_whole(one));
  // Its key opens nothing any more.
  auto late = machine("west").on(
      [&] { return say_in_tls(machine("north").address, port, folder_ / "keys", "west"); });
  EXPECT_TRUE(is_turned_away(late));
  busy->end();
  EXPECT_GT(busy->seen.whole, 20u);
  EXPECT_EQ(busy->seen.retryable + busy->seen.cut + busy->seen.other, 0u) << host("north").errors();
}

TEST_F(Hosts, ASignalTakesOneHostAwayAndNotTheCluster) {
  auto path = file("two.toml", config({"north", "south"}, 2, 2000));
  up(path, "north");
  up(path, "south");
  ASSERT_TRUE(host("north").tells("ready: 2 of 2")) << host("north").errors();
  auto busy = clients(4);
  std::this_thread::sleep_for(milliseconds(300));
  ::kill(host("south").pid, SIGTERM);
  EXPECT_EQ(host("south").wait(), 0) << host("south").errors();
  EXPECT_NE(status(path).find("\"reason\":\"its host left\""), std::string::npos) << status(path);
  up(path, "south");
  EXPECT_TRUE(eventually([&] { return is_whole(path); })) << status(path);
  busy->end();
  EXPECT_GT(busy->seen.whole, 10u);
  EXPECT_EQ(busy->seen.retryable + busy->seen.cut + busy->seen.other, 0u);

  // A second signal does not wait for anybody.
  {
    auto slow = clients(6, 400);
    std::this_thread::sleep_for(milliseconds(300));
    ::kill(host("south").pid, SIGTERM);
    std::this_thread::sleep_for(milliseconds(100));
    ::kill(host("south").pid, SIGTERM);
    EXPECT_EQ(host("south").wait(), 0) << host("south").errors();
    slow->end();
    EXPECT_EQ(slow->seen.cut + slow->seen.other, 0u);
  }
  up(path, "south");
  EXPECT_TRUE(eventually([&] { return is_whole(path); })) << status(path);

  // Where nobody can let it go, it goes by itself.
  ASSERT_EQ(machine("south").cable(false), "");
  EXPECT_TRUE(eventually([&] { return !joined(path, "south"); }));
  ::kill(host("south").pid, SIGTERM);
  EXPECT_EQ(host("south").wait(), 0) << host("south").errors();
}

TEST_F(Hosts, ASecondOfTheSameNameIsRefused) {
  auto path = file("two.toml", config({"north", "south"}, 2));
  up(path, "north");
  up(path, "south");
  ASSERT_TRUE(host("north").tells("ready: 2 of 2")) << host("north").errors();
  std::filesystem::create_directory(folder_ / "elsewhere");
  ::setenv("XDG_RUNTIME_DIR", (folder_ / "elsewhere").c_str(), 1);
  std::optional<running_cluster> twin;
  machine("west").on([&] { twin.emplace(host_of{path, "south"}); });
  EXPECT_TRUE(twin->tells("another process serves as host south")) << twin->errors();
  ::setenv("XDG_RUNTIME_DIR", (folder_ / "run").c_str(), 1);
  EXPECT_TRUE(is_whole(path)) << status(path);
  // Where the first one is gone, it takes over.
  ::kill(host("south").pid, SIGKILL);
  EXPECT_TRUE(twin->tells("joined, led by")) << twin->errors();
  EXPECT_TRUE(eventually([&] { return is_whole(path); })) << status(path);
}

TEST_F(Hosts, OneThatRunsAnotherBuildIsNotLetIn) {
  auto path = file("two.toml", config({"north", "south"}, 2));
  auto build = [&](const std::string& name, const std::string& end) {
    auto made = folder_ / name;
    std::filesystem::copy_file(places::program, made);
    std::ofstream(made, std::ios::binary | std::ios::app) << end;
    return made;
  };
  up(path, "north");
  program_ = build("other", "behind its last section a program may have anything");
  up(path, "south");
  ASSERT_TRUE(host("south").tells("not joined: the leader runs another build of lethe"))
      << host("south").errors();
  EXPECT_FALSE(joined(path, "south"));
  ::kill(host("south").pid, SIGTERM);
  EXPECT_EQ(host("south").wait(), 0) << host("south").errors();
  // The control: a copy of what the leader runs.
  program_ = build("copy", "");
  up(path, "south");
  EXPECT_TRUE(host("north").tells("ready: 2 of 2")) << host("south").errors();
}

TEST_F(Hosts, ALeaderThatDiesGetsItsHostsBack) {
  auto path = file("two.toml", config({"north", "south"}, 2));
  up(path, "north");
  up(path, "south");
  ASSERT_TRUE(host("north").tells("ready: 2 of 2")) << host("north").errors();
  ::kill(host("north").pid, SIGKILL);
  EXPECT_TRUE(host("south").tells("not joined: ")) << host("south").errors();
  up(path, "north");
  EXPECT_TRUE(host("north").tells("ready: 2 of 2", 10)) << host("south").errors();
  EXPECT_EQ(ask("The answer is").status, 200);
  EXPECT_EQ(run_lethe({"down", "--cluster", path}).exit_code, 0);
  EXPECT_EQ(host("south").wait(), 0) << host("south").errors();
}

/// The order to leave waits for an answer, the link is found lost, and all ends, at once.
TEST_F(Hosts, ASignalWhileTheLeaderIsBeingLostIsObeyed) {
  auto path = file("two.toml", config({"north", "south"}, 2, 1000));
  up(path, "north");
  for (int ms : {900, 1000, 1050, 1100}) {
    up(path, "south");
    ASSERT_TRUE(eventually([&] { return is_whole(path); })) << status(path);
    ASSERT_EQ(machine("south").cable(false), "");
    std::this_thread::sleep_for(milliseconds(ms));
    ::kill(host("south").pid, SIGTERM);
    EXPECT_EQ(host("south").wait(), 0) << ms << " ms: " << host("south").errors();
    ASSERT_EQ(machine("south").cable(true), "");
  }
}

}  // namespace
}  // namespace lethe
