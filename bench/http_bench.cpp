// What the HTTP server costs beyond the sockets: whole requests on one connection, and single
// pieces of a stream, each against a thread that moves the same bytes with bare system calls.
// Prints one line of JSON per measurement.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "runtime/base/check.hpp"
#include "runtime/http/http_server.hpp"

namespace lethe {
namespace {

using steady = std::chrono::steady_clock;
constexpr int rounds = 30;

class echo final : public http_handler {
 public:
  void arrived(http_server& from, http_request r) override {
    if (r.head.path == "/stream") return streaming_.store(r.id), streaming_.notify_all();
    from.answer(r.id, {}, r.body);
  }
  void left(uint64_t) override {}
  void drained(uint64_t, size_t) override {}
  void sent(uint64_t) override {}
  uint64_t wait_stream() {
    streaming_.wait(0);
    return streaming_.load();
  }

 private:
  std::atomic<uint64_t> streaming_ = 0;
};

int connect_to(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void send_all(int fd, std::string_view text) {
  check(send(fd, text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size()));
}

/// The text of so many bytes, or less at the end.
std::string take(int fd, size_t bytes) {
  std::string text(bytes, '\0');
  size_t has = 0;
  for (ssize_t n = 1; has < bytes && n > 0; has += size_t(std::max<ssize_t>(n, 0)))
    n = recv(fd, text.data() + has, bytes - has, 0);
  text.resize(has);
  return text;
}

/// A blocking thread with one client: for every `in` bytes, or every beat of `wake`, says `out`.
class bare {
 public:
  bare(size_t in, int wake, std::string out) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{.sin_family = AF_INET};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    check(bind(listener_, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
          listen(listener_, 1) == 0 &&
          getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    thread_ = std::thread([this, in, wake, out = std::move(out)] { serve(in, wake, out); });
    client_ = connect_to(ntohs(at.sin_port));
  }
  ~bare() {
    close(client_);
    thread_.join();
    close(listener_);
  }
  int client() const { return client_; }

 private:
  void serve(size_t in, int wake, const std::string& out) {
    int fd = accept(listener_, nullptr, nullptr), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (;;) {
      uint64_t beats = 1;
      if (wake >= 0 && (read(wake, &beats, sizeof beats) < 0 || beats > 1)) break;
      if (wake < 0 && take(fd, in).size() < in) break;
      send_all(fd, out);
    }
    close(fd);
  }

  int listener_, client_ = -1;
  std::thread thread_;
};

struct spread {
  double p10, median, p90;
};

/// Microseconds per call: `calls` in each round.
spread time_calls(int calls, const std::function<void()>& call) {
  for (int i = 0; i < calls; ++i) call();
  std::vector<double> took;
  for (int r = 0; r < rounds; ++r) {
    auto begin = steady::now();
    for (int i = 0; i < calls; ++i) call();
    took.push_back(std::chrono::duration<double, std::micro>(steady::now() - begin).count() /
                   calls);
  }
  std::ranges::sort(took);
  return {took[rounds / 10], took[rounds / 2], took[rounds * 9 / 10]};
}

void print(const char* what, size_t bytes, spread ours, spread bare) {
  fmt::print(
      "{{\"what\":\"{}\",\"bytes\":{},\"us\":{:.2f},\"us_p10\":{:.2f},\"us_p90\":{:.2f},"
      "\"per_second\":{:.0f},\"bare_us\":{:.2f},\"ratio\":{:.2f}}}\n",
      what, bytes, ours.median, ours.p10, ours.p90, 1e6 / ours.median, bare.median,
      ours.median / bare.median);
}

void requests(uint16_t port, size_t body, int calls) {
  std::string text(body, 'b');
  auto request =
      fmt::format("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body, text);
  int fd = connect_to(port);
  send_all(fd, request);
  std::string answer;
  while (!answer.ends_with("\r\n\r\n")) answer += take(fd, 1);
  check(answer.starts_with("HTTP/1.1 200 OK") && take(fd, body) == text);
  answer += text;
  auto turn = [&](int on) {
    send_all(on, request);
    check(take(on, answer.size()).size() == answer.size());
  };
  auto ours = time_calls(calls, [&] { turn(fd); });
  bare peer(request.size(), -1, answer);
  auto theirs = time_calls(calls, [&] { turn(peer.client()); });
  close(fd);
  print("request", body, ours, theirs);
}

void pieces(http_server& s, echo& program, uint16_t port, size_t bytes, int calls) {
  int fd = connect_to(port);
  send_all(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  auto id = program.wait_stream();
  s.begin(id, {.content_type = "text/event-stream"});
  std::string head;
  while (!head.ends_with("\r\n\r\n")) head += take(fd, 1);
  std::string piece(bytes, 'p');
  auto framed = fmt::format("{:x}\r\n{}\r\n", bytes, piece);
  auto ours = time_calls(calls, [&] {
    s.write(id, piece);
    check(take(fd, framed.size()) == framed);
  });
  close(fd);
  int wake = eventfd(0, EFD_CLOEXEC);
  auto beat = [&](uint64_t beats) { check(write(wake, &beats, sizeof beats) == sizeof beats); };
  {
    bare peer(0, wake, framed);
    auto theirs = time_calls(calls, [&] {
      beat(1);
      check(take(peer.client(), framed.size()) == framed);
    });
    beat(2);
    print("piece", bytes, ours, theirs);
  }
  close(wake);
}

int measure(int calls) {
  echo program;
  http_listener where[] = {{"bench", "127.0.0.1:0"}};
  auto s = http_server::start(where, {}, program);
  if (!s) return fmt::print(stderr, "{}\n", s.why().text), 1;
  auto address = (*s)->bound()[0].address;
  auto port = uint16_t(std::stoi(address.substr(address.rfind(':') + 1)));
  requests(port, 0, calls);
  requests(port, 4096, calls);
  pieces(**s, program, port, 200, calls);
  return 0;
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  CLI::App app{"Measures the HTTP server against bare sockets", "http_bench"};
  int calls = 1000;
  app.add_option("--calls", calls, "of each kind in each of 30 rounds")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return lethe::measure(calls);
}
