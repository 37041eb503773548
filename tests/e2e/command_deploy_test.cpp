// What configs/deploy/ holds, run as far as one machine can.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/e2e/cluster.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

const std::string deploy = std::string(places::source) + "/configs/deploy/";

void write_program(const scratch_folder& folder, const std::string& name, const std::string& text) {
  std::string path = folder.write(name, text);
  ::chmod(path.c_str(), 0700);
}

/// A job on two nodes of a Slurm that is this machine: loopback addresses are its nodes.
class slurm_job {
 public:
  slurm_job() {
    write_program(folder_, "scontrol", "#!/bin/sh\necho n2; echo n3\n");
    write_program(folder_, "getent", "#!/bin/sh\necho 127.0.0.${2#n}\n");
    write_program(folder_, "srun",
                  "#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\n"
                  "SLURMD_NODENAME=n2 \"$@\" & SLURMD_NODENAME=n3 \"$@\" & wait\n");
    std::string out = folder_ / "out";
    pid_ = ::fork();
    if (pid_ != 0) return;
    int fd = ::open(out.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(fd, 1);
    ::dup2(fd, 2);
    ::setenv("PATH", ((folder_ / "") + ":" + std::getenv("PATH")).c_str(), 1);
    ::setenv("SLURM_SUBMIT_DIR", (folder_ / "").c_str(), 1);
    ::setenv("SLURM_TMPDIR", (folder_ / "").c_str(), 1);
    ::setenv("SLURM_JOB_ID", "7", 1);
    ::setenv("SLURM_JOB_NODELIST", "n[2-3]", 1);
    ::setenv("LETHE", places::program, 1);
    ::setenv("LETHE_API_PORT", "0", 1);
    std::string port = std::to_string(20000 + ::getpid() % 20000);
    std::string model = std::string(places::source) + "/models/tiny";
    ::execlp("bash", "bash", (deploy + "slurm.sh").c_str(), model.c_str(), port.c_str(), nullptr);
    ::_exit(127);
  }
  ~slurm_job() {
    if (pid_ > 0) end();
  }

  std::string said() const { return read_file(folder_ / "out"); }
  bool says(const std::string& what) const {
    for (int i = 0; i < 3000 && said().find(what) == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return said().find(what) != std::string::npos;
  }
  /// As Slurm does when the time is up; the script's exit code.
  int end() {
    ::kill(pid_, SIGTERM);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WEXITSTATUS(status);
  }
  size_t left_behind() const {
    size_t n = 0;
    for (const auto& e : std::filesystem::directory_iterator(folder_ / ""))
      n += e.path().filename().string().starts_with("lethe-");
    return n;
  }

 private:
  scratch_folder folder_;
  pid_t pid_ = -1;
};

TEST(Deploy, ASlurmJobIsAClusterUntilItsTimeIsUp) {
  slurm_job job;
  ASSERT_TRUE(job.says("ready: 2 of 2")) << job.said();
  std::string said = job.said();
  size_t at = said.find("listening api http://127.0.0.1:");
  ASSERT_NE(at, said.npos) << said;
  auto port = uint16_t(std::atoi(said.c_str() + said.find(':', at + 20) + 1));
  http_said answer;
  std::thread asker([&] { answer = http_ask(port, "/v1/completions", completion(400)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(job.end(), 143) << job.said();
  asker.join();
  EXPECT_EQ(answer.status, 200) << "the job's end cut a request\n" << job.said();
  EXPECT_EQ(job.left_behind(), 0u) << "keys or sockets";
}

TEST(Deploy, TheKubernetesFileIsAClusterOfThePodsThatTheSetMakes) {
  auto checked = run_lethe({"config", "check", deploy + "kubernetes/cluster.toml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  std::string set = read_file(deploy + "kubernetes/statefulset.yaml");
  auto has = [](const std::string& text, const std::string& what) {
    return text.find(what) != text.npos;
  };
  EXPECT_TRUE(has(set, "replicas: 2\n"));
  for (const char* pod : {"lethe-0", "lethe-1"})
    EXPECT_TRUE(has(checked.out, std::string("host ") + pod)) << checked.out;
  EXPECT_FALSE(has(checked.out, "lethe-2"));
}

TEST(Deploy, TheUnitsCommandIsOneThatTheProgramKnows) {
  std::string unit = read_file(deploy + "lethe@.service");
  size_t at = unit.find("ExecStart=/usr/local/bin/lethe ");
  ASSERT_NE(at, unit.npos);
  std::istringstream line(unit.substr(at + 31, unit.find('\n', at) - at - 31));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  ASSERT_EQ(words.size(), 4u);
  words[1] = std::string(places::source) + "/configs/two-hosts.toml";
  words[3] = "nobody";  // instead of the instance, so that it refuses
  auto up = run_lethe(words);
  EXPECT_EQ(up.exit_code, 1);
  EXPECT_NE(up.err.find("--host nobody: the file has north, south"), std::string::npos) << up.err;
}

}  // namespace
}  // namespace lethe
