// What the commands of a client say and do while relay or gateway are away.
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>

#include "tests/e2e/private_clients.hpp"

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

}  // namespace
}  // namespace lethe
