// Who starts a cluster and does not stay with it: a shell with --detach, systemd.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/e2e/cluster.hpp"

namespace lethe {
namespace {

/// Clusters of this test are found in this folder, and end with it.
class detached_cluster {
 public:
  explicit detached_cluster(const std::string& config) {
    ::setenv("XDG_RUNTIME_DIR", (folder_ / "").c_str(), 1);
    file = folder_.write("cluster.toml", config);
  }
  ~detached_cluster() { run_lethe({"down", "--now", "--cluster", file}); }

  finished up() const { return run_lethe({"up", "--detach", file}); }
  finished down() const { return run_lethe({"down", "--cluster", file}); }
  std::string log() const { return folder_ / "lethe/lethe.log"; }

  const scratch_folder& folder() const { return folder_; }
  std::string file;

 private:
  scratch_folder folder_;
};

std::string word_after(const std::string& text, const std::string& what) {
  size_t at = text.find(what);
  if (at == text.npos) return {};
  at += what.size();
  return text.substr(at, text.find_first_of(" \n", at) - at);
}

/// Whether a process runs; one that ended and that nobody has asked for does not.
bool runs(const std::string& pid) {
  std::string stat = read_file("/proc/" + pid + "/stat");
  return !stat.empty() && stat.find(") Z ") == stat.npos;
}

TEST(Launch, DetachedItStaysAndIsFoundAndEndedByName) {
  detached_cluster c(lab_config("[engines]\nprocesses = \"separate\"\n"));
  auto up = c.up();
  ASSERT_EQ(up.exit_code, 0) << up.out << up.err;
  EXPECT_NE(up.out.find("ready: 1 of 1"), std::string::npos) << up.out;
  std::string pid = word_after(up.out, "detached, process ");
  EXPECT_TRUE(runs(pid)) << up.out;
  std::string url = word_after(up.out, "listening api ");
  auto port = uint16_t(std::atoi(url.c_str() + url.rfind(':') + 1));
  EXPECT_EQ(http_ask(port, "/v1/completions", completion(4)).status, 200);

  struct stat log {};
  ASSERT_EQ(::stat(c.log().c_str(), &log), 0);
  EXPECT_EQ(log.st_mode & 0777, mode_t{0600});
  auto again = c.up();
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("runs here already"), std::string::npos) << again.err;
  EXPECT_NE(read_file(c.log()).find("ready: 1 of 1"), std::string::npos) << "its log is gone";

  EXPECT_EQ(c.down().exit_code, 0);
  EXPECT_NE(read_file(c.log()).find("every arena is wiped"), std::string::npos);
}

TEST(Launch, WhenDownReturnsItsPortsAreFree) {
  detached_cluster c(lab_config());
  std::string url = word_after(c.up().out, "listening api ");
  ASSERT_FALSE(url.empty());
  ASSERT_EQ(c.down().exit_code, 0);
  std::string fixed = lab_config();
  fixed.replace(fixed.find("127.0.0.1:0"), 11, url.substr(url.find("127")));
  for (int i = 0; i < 3; ++i) {
    c.file = c.folder().write("cluster.toml", fixed);
    auto up = c.up();
    EXPECT_EQ(up.exit_code, 0) << up.out;
    EXPECT_EQ(c.down().exit_code, 0);
  }
}

TEST(Launch, DetachedItSaysWhyItCannotStart) {
  detached_cluster first(lab_config());
  std::string url = word_after(first.up().out, "listening api ");
  std::string taken = url.substr(url.find("127"));
  std::string config = "name = \"second\"\n" + lab_config();
  config.replace(config.find("127.0.0.1:0"), 11, taken);
  auto up = run_lethe({"up", "--detach", first.folder().write("second.toml", config)});
  EXPECT_EQ(up.exit_code, 1);
  EXPECT_NE(up.out.find(taken), std::string::npos) << up.out;
}

TEST(Launch, SystemdIsToldWhenItIsReadyAndWhenItLeaves) {
  scratch_folder folder;
  int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::string path = folder / "notify";
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  auto told = [fd]() -> std::string {
    char text[64] = {};
    pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&p, 1, 30'000) == 1 && ::recv(fd, text, sizeof text - 1, 0) > 0 ? text : "";
  };
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  running_cluster c(lab_config());
  ::unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(told(), "READY=1");
  EXPECT_EQ(http_ask(c.port("metrics"), "/readyz").status, 200);
  ::kill(c.pid, SIGTERM);
  EXPECT_EQ(told(), "STOPPING=1");
  EXPECT_EQ(c.wait(), 0) << c.errors();
  ::close(fd);
}

}  // namespace
}  // namespace lethe
