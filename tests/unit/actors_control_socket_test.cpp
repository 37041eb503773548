// The operator's socket: only its user gets in, and nobody can make it wait, grow or break.
#include "actors/cluster/control_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>

namespace lethe {
namespace {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begun) {
  return std::chrono::duration<double>(clock::now() - begun).count();
}

class ControlSocket : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "lethe-control-XXXXXX").string();
    home = ::mkdtemp(name.data());
    ::setenv("XDG_RUNTIME_DIR", home.c_str(), 1);
  }
  void TearDown() override {
    server.reset();
    fs::remove_all(home);
  }
  /// Answers "scale N" with "refused N", so that answers can be told apart.
  void serve() {
    auto made = control_server::start("c", [this](const wire<schema::ControlAsk>& m) {
      uint16_t n = 0;
      auto read = unpack(m, [&n](schema::ControlAsk::Reader r) {
        if (r.isScale()) n = r.getScale();
      });
      ++asked;
      return pack<schema::ControlAnswer>({}, [&](schema::ControlAnswer::Builder b) {
        b.setRefused(read ? std::to_string(n) : "no message");
      });
    });
    ASSERT_TRUE(made) << made.why().text;
    server = *std::move(made);
  }
  int connection() const {
    sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(at.sun_path, (home / "lethe" / "c.sock").c_str(), sizeof at.sun_path - 1);
    int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) return fd;
    ::close(fd);
    return -1;
  }
  /// What comes back for these bytes, until the server closes.
  std::string raw(const std::string& bytes, bool then_close = true) const {
    int fd = connection();
    (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (then_close) ::shutdown(fd, SHUT_WR);
    std::string all;
    char part[4096];
    for (ssize_t n; (n = ::recv(fd, part, sizeof part, 0)) > 0;) all.append(part, size_t(n));
    ::close(fd);
    return all;
  }

  fs::path home;
  std::unique_ptr<control_server> server;
  std::atomic<int> asked{0};
};

wire<schema::ControlAsk> scale(uint16_t n) {
  return pack<schema::ControlAsk>({}, [n](schema::ControlAsk::Builder b) { b.setScale(n); });
}

std::string size_prefix(uint32_t n) { return {reinterpret_cast<char*>(&n), sizeof n}; }

std::string answer_to(uint16_t n) {
  auto said = ask_cluster("c", scale(n));
  if (!said) return said.why().text;
  std::string text = "?";
  auto read =
      unpack(*said, [&text](schema::ControlAnswer::Reader r) { text = r.getRefused().cStr(); });
  return read ? text : read.why().text;
}

TEST_F(ControlSocket, AnswersWhoeverMayOpenItAndNobodyElse) {
  serve();
  EXPECT_EQ(answer_to(7), "7");
  struct stat folder {};
  ASSERT_EQ(::stat((home / "lethe").c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
  EXPECT_EQ(running_clusters(), std::vector<std::string>{"c"});
  server.reset();
  EXPECT_TRUE(running_clusters().empty());
  EXPECT_NE(answer_to(7).find("lethe up FILE starts one"), std::string::npos);
}

TEST_F(ControlSocket, AFolderThatOthersCanOpenIsRefused) {
  fs::create_directory(home / "lethe");
  for (unsigned open : {0755u, 0710u, 0770u, 0701u}) {
    fs::permissions(home / "lethe", fs::perms(open));
    auto refused = control_server::start("c", {});
    ASSERT_FALSE(refused) << open;
    EXPECT_NE(refused.why().text.find("chmod 700"), std::string::npos) << refused.why().text;
    EXPECT_NE(answer_to(1).find("chmod 700"), std::string::npos);
  }
  fs::permissions(home / "lethe", fs::perms(0700));
  serve();
  EXPECT_EQ(answer_to(1), "1");
}

TEST_F(ControlSocket, ALinkInPlaceOfTheFolderIsRefused) {
  fs::create_directory(home / "elsewhere");
  fs::permissions(home / "elsewhere", fs::perms(0700));
  fs::create_symlink(home / "elsewhere", home / "lethe");
  EXPECT_FALSE(control_server::start("c", {}));
  fs::remove(home / "lethe");
  std::ofstream(home / "lethe") << "a file";
  EXPECT_FALSE(control_server::start("c", {}));
}

TEST_F(ControlSocket, AnotherUsersFolderIsRefusedAndOursIsShutToThem) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can be two users";
  constexpr uid_t nobody = 65534;
  serve();
  fs::permissions(home, fs::perms(0755));
  pid_t child = ::fork();
  if (child == 0) {
    if (::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0)
      ::_exit(2);
    ::_exit(connection() < 0 && errno == EACCES ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  server.reset();
  ASSERT_EQ(::chown((home / "lethe").c_str(), nobody, nobody), 0);
  EXPECT_FALSE(control_server::start("c", {}));
}

TEST_F(ControlSocket, ANameThatMakesThePathTooLongIsRefused) {
  auto refused = control_server::start(std::string(100, 'x'), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.why().text.find("too long"), std::string::npos) << refused.why().text;
}

TEST_F(ControlSocket, TwoOfANameAreNotPossibleButADeadOnesSocketIsTakenOver) {
  serve();
  auto second = control_server::start("c", {});
  ASSERT_FALSE(second);
  EXPECT_NE(second.why().text.find("runs here already"), std::string::npos);
  EXPECT_EQ(answer_to(3), "3");
  // What a process leaves that was killed.
  server.reset();
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(at.sun_path, (home / "lethe" / "c.sock").c_str(), sizeof at.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ::close(fd);
  serve();
  EXPECT_EQ(answer_to(4), "4");
}

TEST_F(ControlSocket, AFrameIsTakenUpToItsLimitAndNotBeyond) {
  serve();
  constexpr size_t most = limits::control_ask_bytes_max;
  for (size_t size : {most - 8, most}) {
    asked = 0;
    auto back = raw(size_prefix(uint32_t(size)) + std::string(size, '\0'));
    EXPECT_EQ(asked, 1) << size;
    EXPECT_GT(back.size(), 8u);
  }
  asked = 0;
  // Refused by its length: nothing is read of it, nothing allocated for it.
  for (uint32_t size : {uint32_t(most) + 1, uint32_t(most) + 8, UINT32_MAX})
    EXPECT_EQ(raw(size_prefix(size) + std::string(64, 'x'), false), "");
  EXPECT_EQ(asked, 0);
}

TEST_F(ControlSocket, HalfAMessageIsNoMessage) {
  serve();
  auto whole = scale(5).frame;
  std::string text = size_prefix(uint32_t(whole.size())) + std::string(as_text(whole));
  for (size_t n = 0; n < text.size(); ++n) EXPECT_EQ(raw(text.substr(0, n)), "") << n;
  EXPECT_EQ(asked, 0);
  EXPECT_GT(raw(text).size(), 8u);
  EXPECT_GT(raw(size_prefix(16) + std::string(16, '\xff')).size(), 8u);  // answered: no message
  EXPECT_EQ(answer_to(5), "5");
}

TEST_F(ControlSocket, APeerThatDripsIsDroppedAndTheNextIsServed) {
  serve();
  int slow = connection();
  ASSERT_GE(slow, 0);
  (void)!::send(slow, size_prefix(1000).data(), 4, MSG_NOSIGNAL);
  std::thread drip([slow] {
    while (::send(slow, "x", 1, MSG_NOSIGNAL) == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  auto begun = clock::now();
  EXPECT_EQ(answer_to(9), "9");
  EXPECT_LT(seconds_since(begun), 8);  // its patience is five seconds
  drip.join();
  ::close(slow);
  EXPECT_EQ(asked, 1);
}

TEST_F(ControlSocket, ManyAtOnceEachGetTheirOwnAnswer) {
  serve();
  std::vector<std::thread> askers;
  std::atomic<int> right{0};
  for (uint16_t i = 0; i < 8; ++i)
    askers.emplace_back([&right, i] {
      for (uint16_t k = 0; k < 20; ++k)
        right += answer_to(i * 100 + k) == std::to_string(i * 100 + k);
    });
  for (auto& t : askers) t.join();
  EXPECT_EQ(right, 160);
}

TEST_F(ControlSocket, AnAnswerThatThrowsIsOnlyThatClientsLoss) {
  auto made = control_server::start("c", [this](const wire<schema::ControlAsk>&) {
    if (++asked == 1) throw std::bad_alloc();
    return pack<schema::ControlAnswer>({}, [](auto b) { b.setRefused("well"); });
  });
  ASSERT_TRUE(made);
  EXPECT_EQ(answer_to(1), "cluster \"c\": it does not answer");
  EXPECT_EQ(answer_to(1), "well");
}

}  // namespace
}  // namespace lethe
