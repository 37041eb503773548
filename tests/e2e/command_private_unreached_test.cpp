// What the commands of a client say and do while relay or gateway are away.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <list>

#include "tests/e2e/private_clients.hpp"
#include "tests/e2e/running_lethe.hpp"

namespace lethe {
namespace {

struct PrivatePathUnreached : PrivatePath {
  PrivatePathUnreached() { tapped_ = false; }

  uint16_t kill_gateway() {
    uint16_t port = gateway_->port("gateway");
    ::kill(gateway_->pid, SIGKILL);
    ::waitpid(gateway_->pid, nullptr, 0);
    gateway_->pid = -1;
    return port;
  }
};

sockaddr_in loopback(uint16_t port) {
  return {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/// Passes on what clients send to a server, and what that says unless it is told to hold it.
class holding_server {
 public:
  explicit holding_server(uint16_t to) : to_(to), fd_(open()) {
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    ::bind(fd_, reinterpret_cast<sockaddr*>(&at), size);
    ::listen(fd_, 8);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    accepting_ = std::jthread([this](const std::stop_token& stop) { accept_all(stop); });
  }
  ~holding_server() {
    ::shutdown(fd_, SHUT_RDWR);
    accepting_ = {};
    passing_.clear();
    ::close(fd_);
  }
  uint16_t port() const { return port_; }
  std::atomic<bool> holds{false};

 private:
  static int open() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }
  void accept_all(const std::stop_token& stop) {
    for (int client; !stop.stop_requested() && (client = ::accept(fd_, nullptr, nullptr)) >= 0;) {
      int server = open();
      sockaddr_in at = loopback(to_);
      ::connect(server, reinterpret_cast<sockaddr*>(&at), sizeof at);
      passing_.emplace_back([=, this](const std::stop_token& s) { pass(client, server, s); });
    }
  }
  void pass(int client, int server, const std::stop_token& stop) {
    auto move = [](int from, int to) {
      char part[16384];
      const ssize_t n = ::recv(from, part, sizeof part, 0);
      return n > 0 && ::send(to, part, size_t(n), MSG_NOSIGNAL) == n;
    };
    for (bool good = true; good && !stop.stop_requested();) {
      pollfd both[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
      ::poll(both, holds ? 1 : 2, 20);
      if (both[0].revents) good = move(client, server);
      if (good && both[1].revents) good = move(server, client);
    }
    ::close(client);
    ::close(server);
  }

  uint16_t to_, port_ = 0;
  int fd_;
  std::jthread accepting_;
  std::list<std::jthread> passing_;
};

constexpr const char question[] =
    R"({"model":"ember","messages":[{"role":"user","content":"What is a river?"}]})";

TEST_F(PrivatePathUnreached, AProxyStartsWithoutItsGatewayAndServesWhenItIsBack) {
  buy();
  const uint64_t before = gateway_count("roster");
  const uint16_t port = kill_gateway();
  auto said = ask("Hello");
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "it does not reach the gateway")) << said.err;
  EXPECT_TRUE(has(said.err, "no node is attested")) << said.err;
  running_proxy proxy(trust_);
  ASSERT_NE(proxy.port(), 0);
  auto busy = http_ask(proxy.port(), "/v1/chat/completions", question);
  EXPECT_EQ(busy.status, 503);
  EXPECT_TRUE(has(busy.body, "cluster_busy")) << busy.body;
  start_gateway("127.0.0.1:" + std::to_string(port));
  ASSERT_TRUE(roster_is_out(before));
  auto good = http_ask(proxy.port(), "/v1/chat/completions", question);
  EXPECT_EQ(good.status, 200) << good.body;
  EXPECT_TRUE(has(good.body, "river")) << good.body;
}

TEST_F(PrivatePathUnreached, AProxyOfAnotherLogStillEnds) {
  buy();
  scratch_folder other;
  auto file = other.write("relay.toml", gateway_config("127.0.0.1:0"));
  auto trust = other.write(
      "client.toml",
      run_lethe({"keys", "public", file, "--relay", url_of(relay_->port("relay"))}).out);
  auto said = run_lethe({"proxy", trust, "--listen", "127.0.0.1:0"});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "log: ")) << said.err;
}

/// Takes connections in, and says nothing.
class silent_server {
 public:
  silent_server() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    ::bind(fd_, reinterpret_cast<sockaddr*>(&at), size);
    ::listen(fd_, 8);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
  }
  ~silent_server() { ::close(fd_); }
  uint16_t port() const { return port_; }

 private:
  int fd_;
  uint16_t port_ = 0;
};

TEST_F(PrivatePathUnreached, WhoeverHangsIsWaitedForAloudAndNotForLong) {
  silent_server silent;
  scratch_folder one, other;
  auto trust = run_lethe({"keys", "public", gateway_file_, "--relay", url_of(silent.port())}).out;
  auto quiet = std::async([file = other.write("client.toml", trust)] {
    return run_lethe({"fetch", file, "--prompt", "Hello"});
  });
  auto said =
      run_lethe({"fetch", one.write("client.toml", trust), "--prompt", "Hello", "--explain"});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "still waiting for the gateway's keys and log, by the relay http://"))
      << said.err;
  EXPECT_TRUE(has(said.err, "nothing came for 15 s")) << said.err;
  // To no person, only what came of it.
  said = quiet.get();
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_FALSE(has(said.err, "still waiting")) << said.err;
}

size_t count_of(const std::string& text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_F(PrivatePathUnreached, AChatSaysOfEachAnswerThatItIsWaitedFor) {
  buy();
  holding_server between(relay_->port("relay"));
  auto trust = run_lethe({"keys", "public", gateway_file_, "--relay", url_of(between.port())}).out;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  running_lethe chat({"chat", folder_.write("held.toml", trust), "--explain"}, ends[0]);
  ::close(ends[0]);
  auto comes = [&](auto holds) {
    for (int i = 0; i < 6000 && !holds(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return holds();
  };
  constexpr std::string_view word = "still waiting for the answer";
  for (size_t turn = 0; turn < 3; ++turn) {  // the first is not held: it has looked by then
    between.holds = turn > 0;
    const std::string line = "My cat is called Tom. What is my cat called?\n";
    ASSERT_EQ(::write(ends[1], line.data(), line.size()), ssize_t(line.size()));
    if (turn > 0) {
      ASSERT_TRUE(comes([&] { return count_of(chat.err(), word) >= turn; })) << chat.err();
    }
    between.holds = false;
    ASSERT_TRUE(comes([&] { return count_of(chat.err(), "who saw what") > turn; })) << chat.err();
  }
  ::close(ends[1]);
  auto said = chat.wait();
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "Tom")) << said.out;
}

}  // namespace
}  // namespace lethe
