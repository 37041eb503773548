// Engines on devices, which are emulated here: a process for each rank, the bits of cores, and a
// device that holds one rank at a time.
#include <gtest/gtest.h>

#include "parallel/device_claim.hpp"
#include "tests/e2e/hosts.hpp"
#include "tests/e2e/private_path.hpp"
#include "tests/e2e/ranks.hpp"

namespace lethe {
namespace {

/// The emulation is slow: a model of two layers.
std::string devices_config(
    const std::string& engines, const std::string& more = {},
    const std::string& devices = R"(["cuda:0", "cuda:1", "cuda:2", "cuda:3"])") {
  return "name = \"devices\"\nprofile = \"lab\"\n[model]\nname = \"tiny\"\npath = \"" +
         std::string(places::source) +
         "/models/tiny\"\n[listen]\napi = \"127.0.0.1:0\"\n[batching]\nkv_memory = \"1 MiB\"\n"
         "running = 4\nstep_tokens = 64\nchunk_tokens = 64\n" +
         "[[hosts]]\nname = \"here\"\ndevices = " + devices + "\ndevice_memory = \"4 GiB\"\n" +
         "[engines]\nprocesses = \"ranks\"\n" + engines + more;
}

struct emulated_cluster : running_cluster {
  explicit emulated_cluster(const std::string& config)
      : running_cluster(config, {}, places::emulated_program) {}
};

std::vector<std::string> said_on_cores() {
  running_cluster c(devices_config("threads = 1\nplacement = \"exact\"\nranks = [\"here\"]\n"));
  EXPECT_TRUE(c.tells("ready: 1 of 1")) << c.errors();
  return said_at(c.port("api"));
}

std::string status_of(const running_cluster& c) {
  return run_lethe({"status", "--cluster", c.file}).out;
}
void take_down(running_cluster& c) {
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
  EXPECT_EQ(c.wait(), 0) << c.errors();
}

/// What an engine says why it can't begin.
std::string why_parked(const running_cluster& c) {
  EXPECT_TRUE(c.tells("parked")) << c.errors();
  return status_of(c);
}

const std::string at_once = "[health]\nrestarts = 0\nrank_ms = 1000\n";

TEST(Devices, SayWhatCoresSay) {
  const auto expected = said_on_cores();
  for (auto [tensor, pipeline] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}}) {
    SCOPED_TRACE(std::to_string(tensor) + " x " + std::to_string(pipeline));
    emulated_cluster c(devices_config("tensor = " + std::to_string(tensor) +
                                      "\npipeline = " + std::to_string(pipeline) + "\n"));
    ASSERT_TRUE(c.tells("ready: 1 of 1", 60)) << c.errors() << status_of(c);
    EXPECT_EQ(ranks_of(c).size(), size_t(tensor * pipeline - 1));
    EXPECT_NE(status_of(c).find(std::to_string(tensor) + "x" + std::to_string(pipeline) +
                                (tensor * pipeline == 1 ? " on cuda:0 " : " on cuda:0, cuda:1")),
              std::string::npos)
        << status_of(c);
    EXPECT_EQ(status_of(c).find("arithmetic"), std::string::npos) << status_of(c);
    EXPECT_EQ(said_at(c.port("api")), expected);
    take_down(c);
  }
}

/// With weights of f16: tensor cores round what they multiply, so words' probabilities are others
/// than those of cores; but others that ask meanwhile, chunks and a cut change none.
TEST(Devices, OfTensorArithmeticSayTheSameInAnyCompanyAndCut) {
  const std::string tensor = "arithmetic = \"tensor\"\n";
  std::vector<std::string> alone;
  {
    emulated_cluster c(devices_config(tensor));
    ASSERT_TRUE(c.tells("ready: 1 of 1", 60)) << c.errors() << status_of(c);
    EXPECT_NE(status_of(c).find("1x1 on cuda:0 (tensor arithmetic)  "), std::string::npos)
        << status_of(c);
    auto json = run_lethe({"status", "--json", "--cluster", c.file}).out;
    EXPECT_NE(json.find("\"devices\":[\"cuda:0\"],\"arithmetic\":\"tensor\""), json.npos) << json;
    alone = said_at(c.port("api"));
    take_down(c);
  }
  auto in_chunks = devices_config(tensor + "tensor = 2\n");
  in_chunks.replace(in_chunks.find("chunk_tokens = 64"), 17, "chunk_tokens = 3");
  emulated_cluster c(in_chunks);
  ASSERT_TRUE(c.tells("ready: 1 of 1", 60)) << c.errors() << status_of(c);
  load clients(c.port("api"), 2, 8);
  ASSERT_TRUE(eventually([&] { return clients.seen.whole > 1; }));
  EXPECT_EQ(said_at(c.port("api")), alone);
  clients.end();
  EXPECT_EQ(clients.seen.cut + clients.seen.other, 0u);
  take_down(c);
  EXPECT_NE(alone, said_on_cores()) << "then nothing was rounded";
}

TEST(Devices, HoldTheWeightsAndTheHostDoesNot) {
  for (bool on_device : {true, false}) {
    emulated_cluster c(devices_config(
        on_device ? "tensor = 2\n"
                  : "tensor = 2\nplacement = \"exact\"\nranks = [\"here\", \"here\"]\n"));
    ASSERT_TRUE(c.tells("ready: 1 of 1", 60)) << c.errors();
    auto all = ranks_of(c);
    all.push_back(processes_of(c, "engine-process").at(0));
    ASSERT_EQ(all.size(), 2u);
    for (pid_t p : all) {
      auto maps = read_file("/proc/" + std::to_string(p) + "/maps");
      EXPECT_EQ(maps.find("lethe-weights") == maps.npos, on_device);
    }
  }
}

/// Of a model that the test may spoil.
std::string with_model(std::string config, const std::string& folder) {
  const std::string own = std::string(places::source) + "/models/tiny";
  std::filesystem::copy(own, folder, std::filesystem::copy_options::recursive);
  return config.replace(config.find(own), own.size(), folder);
}

TEST(Devices, NeedTheirFileWhileTheyLoadAndSayThenWhatIsWrongWithIt) {
  scratch_folder folder;
  emulated_cluster c(
      with_model(devices_config("tensor = 2\n", "[health]\nrestarts = 1\nrestart_ms = 100\n"),
                 folder / "model"));
  ASSERT_TRUE(c.tells("ready: 1 of 1", 60)) << c.errors();
  const auto expected = said_at(c.port("api"));
  const std::string file = folder / "model/model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_EQ(said_at(c.port("api")), expected) << "its mapping was not read again";
  ::kill(ranks_of(c).at(0), SIGKILL);
  auto why = why_parked(c);
  EXPECT_NE(why.find(file + ": tensor"), std::string::npos) << why;
}

/// That emulated device, which processes started later want; they have their own in `folder`.
std::optional<device_claim> claimed_in(const scratch_folder& folder, int number) {
  std::filesystem::create_directory(folder / "run");
  ::setenv("XDG_RUNTIME_DIR", (folder / "run").c_str(), 1);
  auto claim =
      device_claim::take("emulated " + std::to_string(number) + " " + (folder / "run"), {});
  EXPECT_TRUE(claim) << claim.why().text;
  return claim ? std::optional(*std::move(claim)) : std::nullopt;
}

/// The leader has its part, the other waits for a device that somebody has.
TEST(Devices, TellHowFarTheyAreWhileTheyLoad) {
  scratch_folder folder;
  auto ours = claimed_in(folder, 1);
  auto file = folder.write("c.toml", devices_config("tensor = 2\n", "[health]\nrank_ms = 60000\n"));
  running_cluster c(host_of{file, "here", places::emulated_program});
  EXPECT_TRUE(eventually([&] {
    auto said = status_of(c);
    return said.find("loading") != said.npos && said.find("100 % of ") != said.npos;
  })) << status_of(c);
  ours.reset();
  EXPECT_TRUE(c.tells("ready: 1 of 1", 60)) << c.errors() << status_of(c);
}

TEST(Devices, AreOneEnginesWhileCoresBesideThemAreAnothers) {
  emulated_cluster c(devices_config(
      "count = 2\nthreads = 1\nplacement = \"exact\"\nranks = [\"here:cuda:2\", \"here\"]\n"));
  ASSERT_TRUE(c.tells("ready: 2 of 2", 60)) << c.errors();
  load clients(c.port("api"), 4, 8);
  EXPECT_TRUE(eventually([&] { return clients.seen.whole > 20; }));
  clients.end();
  EXPECT_EQ(clients.seen.cut + clients.seen.other, 0u);
  take_down(c);
}

TEST(Devices, ThatAreNotThereAreNamed) {
  {
    emulated_cluster c(devices_config("", at_once, R"(["cuda:9"])"));
    auto why = why_parked(c);
    EXPECT_NE(why.find("cuda:9: this host has 4 devices"), std::string::npos) << why;
  }
  running_cluster c(devices_config("", at_once));
  auto why = why_parked(c);
  EXPECT_NE(why.find("devices: "), std::string::npos) << why;
}

TEST(Devices, ThatAnotherProcessHasAreWaitedForAndThenTold) {
  scratch_folder folder;
  auto ours = claimed_in(folder, 0);
  auto file = folder.write(
      "c.toml",
      devices_config("", "[health]\nrestarts = 100\nrestart_ms = 2000\nrank_ms = 1000\n"));
  running_cluster c(host_of{file, "here", places::emulated_program});
  const std::string owner = "cuda:0: device: process " + std::to_string(::getpid()) + " has it";
  EXPECT_TRUE(eventually([&] { return status_of(c).find(owner) != std::string::npos; }))
      << status_of(c);
  ours.reset();
  EXPECT_TRUE(c.tells("ready: 1 of 1", 60)) << c.errors() << status_of(c);
}

/// No two ranks are on a device at any time: the second would be refused, and restarted.
TEST(Devices, AreGivenFromEachEngineToItsSuccessorWhileTheOthersServe) {
  const std::string two = "count = 2\n", devices = R"(["cuda:0", "cuda:3"])";
  emulated_cluster c(devices_config(two, at_once, devices));
  ASSERT_TRUE(c.tells("ready: 2 of 2", 60)) << c.errors();
  load clients(c.port("api"), 3, 8);
  ASSERT_TRUE(eventually([&] { return clients.seen.whole > 5; }));
  auto old = processes_of(c, "engine-process");
  auto changed = devices_config(two, at_once, devices);
  changed.replace(changed.find("running = 4"), 11, "running = 3");
  auto applied = run_lethe({"apply", c.folder().write("next.toml", changed)});
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_NE(applied.out.find("one after the other"), std::string::npos) << applied.out;
  EXPECT_TRUE(eventually(
      [&] {
        auto now = processes_of(c, "engine-process");
        return now.size() == 2 && std::ranges::all_of(old, is_gone) &&
               status_of(c).find("2 of 2 engines ready") != std::string::npos;
      },
      60))
      << status_of(c) << c.errors();
  const uint64_t before = clients.seen.whole;
  EXPECT_TRUE(eventually([&] { return clients.seen.whole > before + 5; }));
  clients.end();
  EXPECT_EQ(clients.seen.cut + clients.seen.other, 0u);
  EXPECT_EQ(status_of(c).find("restarted"), std::string::npos) << status_of(c);
  take_down(c);
}

class DevicesOfTwoHosts : public hosts_test {
 protected:
  DevicesOfTwoHosts() { program_ = places::emulated_program; }

  std::string wide(int tensor, int pipeline) const {
    std::string text = "profile = \"lab\"\n[model]\nname = \"tiny\"\npath = \"" +
                       std::string(places::source) +
                       "/models/tiny\"\n[listen]\napi = \"127.0.0.1:0\"\n[batching]\n"
                       "kv_memory = \"1 MiB\"\nrunning = 4\nstep_tokens = 64\n"
                       "chunk_tokens = 64\n[tls]\nfolder = \"keys\"\n";
    for (const char* name : {"north", "south"})
      text += "[[hosts]]\nname = \"" + std::string(name) + "\"\naddress = \"" +
              machine(name).address + "\"\nport = " + std::to_string(port) +
              "\ndevices = [\"cuda:0\"]\ndevice_memory = \"4 GiB\"\n";
    return text + "[engines]\nprocesses = \"ranks\"\nlinks = \"clear\"\ntensor = " +
           std::to_string(tensor) + "\npipeline = " + std::to_string(pipeline) + "\n";
  }
};

TEST_F(DevicesOfTwoHosts, SayWhatCoresSay) {
  const auto expected = said_on_cores();
  ::setenv("XDG_RUNTIME_DIR", (folder_ / "run").c_str(), 1);
  for (auto [tensor, pipeline] : {std::pair(2, 1), {1, 2}}) {
    SCOPED_TRACE(std::to_string(tensor) + " x " + std::to_string(pipeline));
    auto path = file("wide.toml", wide(tensor, pipeline));
    for (const char* name : {"north", "south"}) up(path, name);
    ASSERT_TRUE(host("north").tells("ready: 1 of 1", 60)) << host("north").errors();
    EXPECT_EQ(ranks_of(host("south")).size(), 1u);
    auto status = run_lethe({"status", "--cluster", path}).out;
    EXPECT_NE(status.find(" on cuda:0, south:cuda:0"), std::string::npos) << status;
    EXPECT_EQ(machine("north").on([to = api()] { return said_at(to); }), expected);
    EXPECT_EQ(run_lethe({"down", "--cluster", path}).exit_code, 0);
    for (const char* name : {"north", "south"}) EXPECT_EQ(host(name).wait(), 0);
  }
}

/// All of the profile that people's words are for.
class StrictDevices : public PrivatePath {
 protected:
  StrictDevices() {
    tapped_ = false;
    program_ = places::emulated_program;
    batching_ = "running = 2\nstep_tokens = 32\nchunk_tokens = 32\n";
    gateway_more_ =
        "[[hosts]]\nname = \"local\"\ndevices = [\"cuda:0\", \"cuda:1\"]\n"
        "device_memory = \"4 GiB\"\n[engines]\nprocesses = \"ranks\"\ntensor = 2\n"
        "[health]\nlost_after_ms = 20000\n";
  }
};

TEST_F(StrictDevices, AnswerThroughThePrivatePathFromClosedProcesses) {
  buy();
  auto answer =
      run_lethe({"fetch", trust_, "/v1/completions", "--data",
                 R"({"model":"ember","prompt":"A dog is a","max_tokens":4,"temperature":0})"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err << status_of(*gateway_);
  EXPECT_NE(answer.out.find("\"completion_tokens\":4"), std::string::npos) << answer.out;
  auto ranks = ranks_of(*gateway_);
  ASSERT_EQ(ranks.size(), 1u);
  ranks.push_back(processes_of(*gateway_, "engine-process").at(0));
  for (pid_t p : ranks) {
    auto status = read_file("/proc/" + std::to_string(p) + "/status");
    EXPECT_NE(status.find("Seccomp:\t2\n"), std::string::npos) << status;
  }
}

class LostDevice : public testing::TestWithParam<int> {};

/// Of two engines of two ranks each, one on devices and one on cores, the first loses a rank.
TEST_P(LostDevice, EndsItsEngineWhichBeginsAnewOnTheSameDevices) {
  emulated_cluster c(
      devices_config("count = 2\ntensor = 2\nthreads = 1\nplacement = \"exact\"\n"
                     "ranks = [\"here:cuda:0\", \"here:cuda:3\", \"here\", \"here\"]\n",
                     "[health]\nrank_ms = 6000\nlost_after_ms = 20000\nrestart_ms = 100\n"));
  ASSERT_TRUE(c.tells("ready: 2 of 2", 60)) << c.errors() << status_of(c);
  load clients(c.port("api"), 4, 16);
  ASSERT_TRUE(eventually([&] { return clients.seen.whole > 10; }));
  const auto before = ranks_of(c);
  ASSERT_EQ(before.size(), 2u);
  const auto on_device = std::ranges::find_if(before, [](pid_t p) {
    return read_file("/proc/" + std::to_string(p) + "/maps").find("lethe-weights") ==
           std::string::npos;
  });
  ASSERT_NE(on_device, before.end()) << "the host's memory has their weights no longer";
  const pid_t lost = *on_device;
  ::kill(lost, GetParam());
  EXPECT_TRUE(eventually([&] {
    auto now = ranks_of(c);
    return now.size() == 2 && std::ranges::find(now, lost) == now.end() &&
           status_of(c).find("2 of 2 engines ready") != std::string::npos;
  })) << c.errors()
      << status_of(c);
  EXPECT_TRUE(eventually([&] { return is_gone(lost); })) << "a stopped one is killed, too";
  const uint64_t whole = clients.seen.whole;
  EXPECT_TRUE(eventually([&] { return clients.seen.whole > whole + 20; }));
  clients.end();
  EXPECT_EQ(clients.seen.cut + clients.seen.other, 0u);
  take_down(c);
}

INSTANTIATE_TEST_SUITE_P(Devices, LostDevice, testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& p) { return p.param == SIGKILL ? "Killed" : "Stopped"; });

}  // namespace
}  // namespace lethe
