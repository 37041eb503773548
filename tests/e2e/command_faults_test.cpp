// A full disk, an engine that cannot start, a process that stops: what the operator is told, and
// what goes on.
#include <gtest/gtest.h>

#include "tests/e2e/cluster.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

bool says(const std::string& text, const std::string& what) { return text.find(what) != text.npos; }

/// A shell command's exit code and all that it printed.
finished shell(const std::string& command) {
  scratch_folder folder;
  std::string out = folder / "out";
  int status = std::system(("{ " + command + "\n} >" + out + " 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), {}};
}

/// Within a disk of 4 KiB, or as many, at DISK, which only this command sees.
finished on_a_small_disk(const std::string& command, int pages = 1) {
  scratch_folder folder;
  std::string disk = folder / "disk";
  std::filesystem::create_directory(disk);
  return shell("DISK=" + disk + " unshare -rm sh -c 'mount -t tmpfs -o nr_inodes=16,size=" +
               std::to_string(4 * pages) + "k none $DISK || exit 99; " + command + "'");
}

bool has_small_disks() { return on_a_small_disk("true").exit_code == 0; }

std::string recording(const scratch_folder& folder) {
  running_cluster c(lab_config("[trace]\nmode = \"all\"\n"));
  EXPECT_TRUE(c.tells("ready: 1 of 1")) << c.errors();
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(http_ask(c.port("api"), "/v1/completions", completion(40)).status, 200);
  std::string file = folder / "recording";
  EXPECT_EQ(run_lethe({"trace", "save", file, "--cluster", c.file}).exit_code, 0);
  EXPECT_GT(std::filesystem::file_size(file), 4096u);
  return file;
}

TEST(FullDisk, WhatIsWrittenIsWrittenWholeOrNotAtAll) {
  if (!has_small_disks()) GTEST_SKIP() << "no mount namespaces here";
  scratch_folder folder;
  std::string from = recording(folder);
  std::string tiny = std::string(places::source) + "/models/tiny";
  std::string keys =
      folder.write("keys.toml", "profile = \"lab\"\n[model]\npath = \"" + tiny +
                                    "\"\n[tls]\nfolder = \"disk\"\n[[hosts]]\nname = \"a\"\n");
  std::string lethe = places::program;
  auto fails = [](const std::string& command, int pages) {
    auto ran = on_a_small_disk("echo what was there before >$DISK/there; " + command +
                                   "; echo exit $?; echo left: $(ls -A $DISK); cat $DISK/there",
                               pages);
    EXPECT_TRUE(says(ran.out, "No space left on device")) << command << "\n" << ran.out;
    EXPECT_TRUE(says(ran.out, "exit 1\nleft: there\nwhat was there before\n")) << command << "\n"
                                                                               << ran.out;
  };
  for (const auto& command : {lethe + " trace save --from " + from + " $DISK/there",
                              lethe + " trace export --from " + from + " --perfetto $DISK/there",
                              lethe + " trace export --from " + from + " --otlp $DISK/there",
                              lethe + " model convert --force " + std::string(places::source) +
                                  "/models/tiny $DISK/there"})
    for (int pages : {1, 2}) fails(command, pages);
  // With two pages a key finds room, and its certificate does not.
  std::string here = folder / "k.toml";
  for (int pages : {1, 2})
    fails("sed \"s,disk,$DISK,\" " + keys + " >" + here + "; " + lethe + " keys init " + here,
          pages);
}

TEST(FullDisk, AnAnswerThatNobodyCouldReadIsAnError) {
  scratch_folder folder;
  std::string from = recording(folder);
  std::string config = folder.write("c.toml", lab_config());
  std::string model = " --model " + std::string(places::source) + "/models/tiny ";
  for (const std::string& command :
       {std::string("config keys"), "config check " + config, std::string("--help"),
        std::string("--version"), "trace list --from " + from, "trace slow --from " + from,
        std::string("model inspect " + std::string(places::source) + "/models/tiny"),
        "tokenize" + model + config, "generate" + model + "--prompt x --max-tokens 2 --quiet",
        "trace export --from " + from + " --otlp /dev/full"}) {
    auto ran = shell(std::string(places::program) + " " + command + " 2>&1 >/dev/full");
    EXPECT_EQ(ran.exit_code, 1) << command;
    EXPECT_TRUE(says(ran.out, "No space left on device") || says(ran.out, "standard output"))
        << command << ": " << ran.out;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << command << ": " << ran.out;
  }
}

TEST(FullDisk, ServingGoesOnWhenTheLogCannotBeWritten) {
  scratch_folder folder;
  std::filesystem::create_directory(folder / "here");
  ::setenv("XDG_RUNTIME_DIR", (folder / "here").c_str(), 1);
  uint16_t port = free_port();
  std::string config = lab_config("[engines]\nprocesses = \"separate\"\n");
  config.replace(config.find("127.0.0.1:0"), 11, "127.0.0.1:" + std::to_string(port));
  std::string file = folder.write("c.toml", config);
  finished up;
  std::thread runs([&] {
    up = shell(std::string(places::program) + " up " + file + " >/dev/full 2>/dev/full");
  });
  auto until = test_clock::now() + std::chrono::seconds(20);
  http_said said;
  while (said.status != 200 && test_clock::now() < until) {
    said = http_ask(port, "/v1/completions", completion(4));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(said.status, 200);
  EXPECT_EQ(run_lethe({"scale", "engines=2", "--cluster", file}).exit_code, 0);
  EXPECT_EQ(http_ask(port, "/v1/completions", completion(4)).status, 200);
  EXPECT_EQ(run_lethe({"down", "--cluster", file}).exit_code, 0);
  runs.join();
  EXPECT_EQ(up.exit_code, 0);
}

TEST(FullDisk, WithoutRoomForItsSocketNothingStarts) {
  if (!has_small_disks()) GTEST_SKIP() << "no mount namespaces here";
  scratch_folder folder;
  std::string file = folder.write("c.toml", lab_config());
  auto ran = on_a_small_disk("mount -o remount,nr_inodes=1 none $DISK; XDG_RUNTIME_DIR=$DISK " +
                             std::string(places::program) + " up " + file + "; echo exit $?");
  EXPECT_TRUE(says(ran.out, "cannot be made: No space left on device")) << ran.out;
  EXPECT_TRUE(says(ran.out, "exit 1")) << ran.out;
}

/// Of a status as JSON.
struct engine_seen {
  std::string phase, reason;
  uint64_t id = 0, pid = 0, epoch = 0;
};
std::vector<engine_seen> engines_of(const std::string& file) {
  std::vector<engine_seen> all;
  json_answer json(run_lethe({"status", "--json", "--cluster", file}).out);
  if (!json.valid) return all;
  for (auto e : json.root["engines"].get_array())
    all.push_back({.phase = std::string(e["phase"].get_string().value_unsafe()),
                   .reason = std::string(e["reason"].get_string().value_unsafe()),
                   .id = e["engine"].get_uint64().value_unsafe(),
                   .pid = e["pid"].get_uint64().value_unsafe(),
                   .epoch = e["epoch"].get_uint64().value_unsafe()});
  return all;
}

/// When an engine's start was told, in seconds since the cluster's own.
std::vector<double> starts_of(const running_cluster& c, uint64_t engine) {
  std::vector<double> at;
  std::istringstream lines(c.errors());
  for (std::string line; std::getline(lines, line);)
    if (says(line, "engine " + std::to_string(engine) + " on local: starting"))
      at.push_back(std::atof(line.c_str()));
  return at;
}

template <class Done>
bool within(double seconds, Done&& done) {
  auto until = test_clock::now() + std::chrono::duration<double>(seconds);
  while (test_clock::now() < until) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

// The file was good when the cluster started, and is not when an engine has to be started again.
TEST(Parking, AnEngineThatCannotStartIsTriedThenParkedAndTheOtherServes) {
  scratch_folder folder;
  std::filesystem::copy(std::string(places::source) + "/models/tiny", folder / "tiny",
                        std::filesystem::copy_options::recursive);
  std::string weights = folder / "tiny/model.safetensors";
  ASSERT_TRUE(std::filesystem::exists(weights));
  running_cluster c(
      "profile = \"lab\"\n[model]\npath = \"" + (folder / "tiny") +
      "\"\n[listen]\napi = \"127.0.0.1:0\"\n[batching]\nkv_memory = \"16 MiB\"\n"
      "[engines]\ncount = 2\nprocesses = \"separate\"\n[health]\nrestart_ms = 150\nrestarts = 3\n");
  ASSERT_TRUE(c.tells("ready: 2 of 2")) << c.errors();
  std::filesystem::rename(weights, weights + ".good");
  std::ofstream(weights) << "garbage";
  auto victim = engines_of(c.file).at(1);
  ::kill(pid_t(victim.pid), SIGKILL);
  uint64_t good = 0, asked = 0;
  ASSERT_TRUE(within(30, [&] {
    ++asked;
    good += http_ask(c.port("api"), "/v1/completions", completion(4)).status == 200;
    return engines_of(c.file).at(1).phase == "parked";
  })) << c.errors();
  EXPECT_EQ(good, asked);
  EXPECT_GT(asked, 3u);
  auto parked = engines_of(c.file).at(1);
  EXPECT_TRUE(says(parked.reason, "model.safetensors")) << parked.reason;
  EXPECT_TRUE(says(run_lethe({"status", "--cluster", c.file}).out, parked.reason));
  auto starts = starts_of(c, victim.id);
  ASSERT_GE(starts.size(), 3u) << c.errors();
  // The waits double: 150 ms, 300 ms, 600 ms; status is looked at every 50 ms.
  EXPECT_GT(starts[starts.size() - 1] - starts[starts.size() - 2], 0.5) << c.errors();
  // Parked again if nobody mended it; then serving.
  auto again = run_lethe({"scale", "engines=2", "--cluster", c.file});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_TRUE(says(again.out, "parked: " + parked.reason)) << again.out << c.errors();
  std::filesystem::rename(weights + ".good", weights);
  auto mended = run_lethe({"apply", c.file});
  EXPECT_EQ(mended.exit_code, 0) << mended.out << mended.err;
  EXPECT_EQ(engines_of(c.file).at(1).phase, "ready");
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
}

TEST(Stopped, IsFoundWithinItsTimeAndAShortPauseIsForgiven) {
  running_cluster c(
      lab_config("[engines]\ncount = 2\nprocesses = \"separate\"\n"
                 "[health]\nheartbeat_ms = 100\nlost_after_ms = 1000\n"));
  ASSERT_TRUE(c.tells("ready: 2 of 2")) << c.errors();
  auto victim = engines_of(c.file).at(0);
  ::kill(pid_t(victim.pid), SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(pid_t(victim.pid), SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  ASSERT_EQ(engines_of(c.file).at(0).epoch, victim.epoch) << c.errors();

  auto begun = test_clock::now();
  ::kill(pid_t(victim.pid), SIGSTOP);
  ASSERT_TRUE(within(10, [&] { return engines_of(c.file).at(0).epoch > victim.epoch; }));
  double found = std::chrono::duration<double>(test_clock::now() - begun).count();
  std::printf("found after %.2f s\n", found);
  EXPECT_GT(found, 0.8);
  EXPECT_LT(found,
            1.0 + 0.1 + 1.5);  // its time, a heartbeat, the wait before a start; slow machines
  // It is not left behind to wake up later.
  EXPECT_TRUE(within(5, [&] { return ::kill(pid_t(victim.pid), 0) != 0 && errno == ESRCH; }));
  EXPECT_TRUE(within(20, [&] { return engines_of(c.file).at(0).phase == "ready"; }));
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
}

/// A model of a context so long that an answer takes as long as a test likes.
std::string long_model(const scratch_folder& folder) {
  std::string at = folder / "long";
  std::filesystem::copy(std::string(places::source) + "/models/tiny", at);
  std::string config = read_file(at + "/config.json"), key = "\"max_position_embeddings\": 512";
  size_t found = config.find(key);
  EXPECT_NE(found, config.npos);
  std::filesystem::remove(at + "/config.json");
  std::ofstream(at + "/config.json")
      << config.replace(found, key.size(), "\"max_position_embeddings\": 65536");
  return at;
}

/// A request whose answer nobody reads.
class open_request {
 public:
  open_request(uint16_t port, const std::string& body) : fd_(connect_to(port)) {
    std::string text =
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        "application/json\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
  }
  ~open_request() { ::close(fd_); }
  open_request(const open_request&) = delete;
  open_request& operator=(const open_request&) = delete;

 private:
  int fd_;
};

// A process that is only stopped is believed to live until `lost_after_ms`; what it said of itself
// when it last could is no reason to send it requests.
TEST(Stopped, AnEngineThatSaysNothingWhileItAnswersIsNotReadyAndIsNamed) {
  scratch_folder folder;
  running_cluster c("profile = \"lab\"\n[model]\npath = \"" + long_model(folder) +
                    "\"\nname = \"tiny\"\n[listen]\napi = \"127.0.0.1:0\"\nmetrics = "
                    "\"127.0.0.1:0\"\n[batching]\nkv_memory = \"256 MiB\"\n"
                    "[engines]\nprocesses = \"separate\"\n[health]\nlost_after_ms = 600000\n");
  ASSERT_TRUE(c.tells("ready: 1 of 1")) << c.errors();
  uint16_t api = c.port("api"), metrics = c.port("metrics");
  auto ready = [&] { return http_ask(metrics, "/readyz"); };
  ASSERT_EQ(ready().status, 200);
  open_request asked(api, completion(60'000));
  ASSERT_TRUE(within(60, [&] {
    return says(http_ask(metrics, "/metrics").body, "\nlethe:num_requests_running 1\n");
  }));
  EXPECT_EQ(ready().status, 200) << "it answers";
  auto engine = engines_of(c.file).at(0);
  ::kill(pid_t(engine.pid), SIGSTOP);
  ASSERT_TRUE(within(60, [&] { return ready().status == 503; }));
  EXPECT_TRUE(says(ready().body, "no token appears")) << ready().body;
  EXPECT_TRUE(says(run_lethe({"status", "--cluster", c.file}).out, "says nothing for"));
  EXPECT_EQ(engines_of(c.file).at(0).phase, "ready") << "it isn't lost yet";
  auto stuck = run_lethe({"trace", "stuck", "--cluster", c.file});
  std::string process = "process " + std::to_string(engine.pid) + " on local";
  EXPECT_TRUE(says(stuck.out, "scheduler@local took Submit; waits for engine 0@local (" + process +
                                  ", which does not answer)"))
      << stuck.out;
  EXPECT_TRUE(says(stuck.out, "gap: " + process + " did not answer")) << stuck.out;
  ::kill(pid_t(engine.pid), SIGCONT);
  EXPECT_TRUE(within(60, [&] { return ready().status == 200; })) << ready().body;
  EXPECT_EQ(run_lethe({"down", "--now", "--cluster", c.file}).exit_code, 0);
}

// Whoever leads and stops has lost its engines when it goes on, and gets new ones.
TEST(Stopped, ALeaderThatWasStoppedServesAgain) {
  running_cluster c(
      lab_config("[engines]\ncount = 2\nprocesses = \"separate\"\n"
                 "[health]\nheartbeat_ms = 100\nlost_after_ms = 600\n"));
  ASSERT_TRUE(c.tells("ready: 2 of 2")) << c.errors();
  uint16_t api = c.port("api");
  ::kill(c.pid, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  ::kill(c.pid, SIGCONT);
  EXPECT_TRUE(within(20, [&] {
    auto said = http_ask(api, "/v1/completions", completion(4));
    EXPECT_TRUE(said.status == 200 || said.status == 503 || said.status == 429) << said.status;
    auto engines = engines_of(c.file);
    return said.status == 200 && engines.size() == 2 && engines[0].phase == "ready" &&
           engines[1].phase == "ready";
  })) << c.errors();
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
  EXPECT_EQ(c.wait(), 0) << c.errors();
}

double resident_mib(pid_t pid) {
  double all = 0, resident = 0;
  std::istringstream(read_file("/proc/" + std::to_string(pid) + "/statm")) >> all >> resident;
  return resident * double(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void ask_many(uint16_t api, int requests) {
  std::vector<std::thread> askers;
  for (int i = 0; i < 6; ++i)
    askers.emplace_back([api, requests] {
      for (int k = 0; k < requests / 6; ++k)
        EXPECT_EQ(http_ask(api, "/v1/completions", completion(1)).status, 200);
    });
  for (auto& t : askers) t.join();
}

// What a request leaves behind for good, be it a kilobyte, adds up.
TEST(Memory, ARequestThatIsGoneLeavesNothing) {
  running_cluster c(lab_config("[engines]\nprocesses = \"separate\"\n"));
  ASSERT_TRUE(c.tells("ready: 1 of 1")) << c.errors();
  uint16_t api = c.port("api");
  pid_t engine = pid_t(engines_of(c.file).at(0).pid);
  ask_many(api, 600);  // caches fill
  double leader_mib = resident_mib(c.pid), engine_mib = resident_mib(engine);
  ask_many(api, 2400);
  EXPECT_LT(resident_mib(engine), engine_mib + 1);
  EXPECT_LT(resident_mib(c.pid), leader_mib + 1.5);
}

}  // namespace
}  // namespace lethe
