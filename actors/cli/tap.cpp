#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>
#include <vector>

#include "actors/cli/commands.hpp"
#include "runtime/base/mapped_file.hpp"

namespace lethe {

namespace {

constexpr size_t part_bytes = 65'536;
constexpr size_t connections_max = 256;
constexpr size_t capture_bytes_max = size_t{64} << 20;

std::atomic<bool> told_to_end{false};

/// On loopback: a tap keeps what passes, so it has no business elsewhere.
sockaddr_in loopback(uint16_t port) {
  return {.sin_family = AF_INET,
          .sin_port = htons(port),
          .sin_addr = {htonl(INADDR_LOOPBACK)},
          .sin_zero = {}};
}

int open_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

class traffic_tap {
 public:
  ~traffic_tap() {
    for (const auto& p : open_) close_both(p);
    if (listener_ >= 0) ::close(listener_);
    if (out_) std::fclose(out_);
  }

  result<uint16_t> start(uint16_t from, uint16_t to, const std::string& file) {
    to_ = to;
    out_ = std::fopen(file.c_str(), "wxe");
    if (!out_) return fail("{}: {}; a tap begins a file of its own", file, std::strerror(errno));
    listener_ = open_socket();
    auto at = loopback(from);
    socklen_t size = sizeof at;
    auto* plain = reinterpret_cast<sockaddr*>(&at);
    if (::bind(listener_, plain, size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, plain, &size) != 0)
      return fail("127.0.0.1:{}: {}", from, std::strerror(errno));
    return ntohs(at.sin_port);
  }

  result<void> run() {
    while (!told_to_end) {
      std::vector<pollfd> all{{.fd = listener_, .events = POLLIN, .revents = 0}};
      for (const auto& p : open_)
        for (int fd : {p.client, p.server})
          all.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      if (::poll(all.data(), nfds_t(all.size()), 100) <= 0) continue;
      size_t i = 1;
      for (auto at = open_.begin(); at != open_.end(); i += 2) {
        bool good = pass(all[i], at->server) && pass(all[i + 1], at->client);
        if (!good) close_both(*at);
        at = good ? std::next(at) : open_.erase(at);
      }
      if (all[0].revents != 0) accept_one();
      if (std::fflush(out_) != 0)
        return fail("what was seen can't be written: {}", std::strerror(errno));
    }
    return {};
  }

 private:
  struct pair {
    int client, server;
  };
  static void close_both(const pair& p) {
    for (int fd : {p.client, p.server})
      if (fd >= 0) ::close(fd);
  }

  void accept_one() {
    pair fresh{::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), open_socket()};
    auto at = loopback(to_);
    bool good = fresh.client >= 0 && open_.size() < connections_max &&
                ::connect(fresh.server, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    good ? open_.push_back(fresh) : close_both(fresh);
  }

  /// False when this side has ended.
  bool pass(const pollfd& from, int to) {
    if (from.revents == 0) return true;
    char part[part_bytes];
    ssize_t n = ::recv(from.fd, part, sizeof part, 0);
    if (n <= 0) return false;
    std::fwrite(part, 1, size_t(n), out_);
    for (ssize_t sent = 0; sent < n;) {
      ssize_t now = ::send(to, part + sent, size_t(n - sent), MSG_NOSIGNAL);
      if (now <= 0) return false;
      sent += now;
    }
    return true;
  }

  uint16_t to_ = 0;
  int listener_ = -1;
  std::FILE* out_ = nullptr;
  std::list<pair> open_;
};

using piece = std::array<unsigned char, 16>;

/// Text is the same in every exchange of a protocol; only what is not text tells one from another.
bool tells(const piece& p) {
  auto odd = [](unsigned char c) { return (c < 0x20 && c != '\r' && c != '\n') || c >= 0x7f; };
  return std::ranges::count_if(p, odd) >= 4;
}

/// Every 16 bytes in a row of what a tap kept.
result<std::vector<piece>> pieces_of(const std::string& file) {
  auto kept = read_text(file, capture_bytes_max);
  if (!kept) return kept.why();
  std::vector<piece> all;
  for (size_t at = 0; at + sizeof(piece) <= kept->size(); ++at) {
    piece p;
    std::memcpy(p.data(), kept->data() + at, sizeof p);
    if (tells(p)) all.push_back(p);
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

int join(const std::string& one, const std::string& other) {
  auto a = pieces_of(one), b = pieces_of(other);
  if (!a || !b) return refuse((a ? b : a).why().text);
  std::vector<piece> both;
  std::ranges::set_intersection(*a, *b, std::back_inserter(both));
  fmt::print("{}\n", both.size());
  return 0;
}

int watch(uint16_t from, uint16_t to, const std::string& file) {
  for (int s : {SIGINT, SIGTERM}) std::signal(s, [](int) { told_to_end = true; });
  traffic_tap tap;
  auto port = tap.start(from, to, file);
  if (!port) return refuse(port.why().text);
  fmt::print("listening tap http://127.0.0.1:{}\n", *port);
  std::fflush(stdout);
  auto done = tap.run();
  return done ? 0 : refuse(done.why().text);
}

}  // namespace

void add_tap(CLI::App& app, int& exit_code) {
  auto* taps = app.add_subcommand(
      "tap", "See for yourself what a part of the private path is told: record it, and compare");
  taps->require_subcommand(1);
  auto* records = taps->add_subcommand(
      "record", "Stand before a server on this machine, and keep all that it is sent and says");
  auto to = std::make_shared<uint16_t>(0), from = std::make_shared<uint16_t>(0);
  auto file = std::make_shared<std::string>(), other = std::make_shared<std::string>();
  records->add_option("PORT", *to, "of the server, on loopback")->required();
  records->add_option("--listen", *from, "a port on loopback; 0: any")->capture_default_str();
  records->add_option("--out", *file, "a new file for what passes, both ways")->required();
  records->footer(
      "Let its clients connect to the tap, and search the file. Ctrl-C or SIGTERM ends it.\n"
      "Example:\n  lethe tap record 8200 --out gateway-saw");
  records->callback([=, &exit_code] { exit_code = watch(*from, *to, *file); });

  auto* joins = taps->add_subcommand(
      "join", "How many strings of 16 bytes, text aside, two recordings have in common");
  joins->add_option("FILE", *file)->required();
  joins->add_option("OTHER", *other)->required();
  joins->footer(
      "What two parts were both told would join what each knows. 0: nothing of the kind.\n"
      "Example:\n  lethe tap join issuer-saw gateway-saw");
  joins->callback([=, &exit_code] { exit_code = join(*file, *other); });
}

}  // namespace lethe
