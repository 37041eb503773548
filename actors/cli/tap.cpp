#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <list>
#include <vector>

#include "actors/cli/commands.hpp"
#include "runtime/audit/tap_capture.hpp"

namespace lethe {

namespace {

constexpr size_t part_bytes = 65'536;
constexpr size_t connections_max = 256;
constexpr size_t index_buffer = connections_max * 2 * 128;  // a line for each side

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
    if (index_) std::fclose(index_);
  }

  result<uint16_t> start(uint16_t from, uint16_t to, in_addr as, const std::string& file) {
    to_ = to;
    as_ = as;
    out_ = std::fopen(file.c_str(), "wxe");
    if (out_) index_ = std::fopen(audit::index_of(file).c_str(), "wxe");
    if (!index_) return fail("{}: {}; a tap begins files of its own", file, std::strerror(errno));
    // It goes out when it is flushed, and only then.
    std::setvbuf(index_, nullptr, _IOFBF, index_buffer);
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
        bool good = pass(all[i], at->server, *at, '>') && pass(all[i + 1], at->client, *at, '<');
        if (!good) close_both(*at);
        at = good ? std::next(at) : open_.erase(at);
      }
      if (all[0].revents != 0) accept_one();
      // In this order, so that whoever reads meanwhile finds what the index tells of.
      if (std::fflush(out_) != 0 || std::fflush(index_) != 0)
        return fail("what was seen can't be written: {}", std::strerror(errno));
    }
    return {};
  }

 private:
  struct pair {
    int client, server;
    uint64_t number;
  };
  static uint64_t now_us() {
    using namespace std::chrono;
    return uint64_t(duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count());
  }
  static void close_both(const pair& p) {
    for (int fd : {p.client, p.server})
      if (fd >= 0) ::close(fd);
  }

  void accept_one() {
    sockaddr_in who{};
    socklen_t size = sizeof who;
    pair fresh{::accept4(listener_, reinterpret_cast<sockaddr*>(&who), &size, SOCK_CLOEXEC),
               open_socket(), ++connections_};
    auto at = loopback(to_), from = loopback(0);
    from.sin_addr = as_;
    bool good = fresh.client >= 0 && open_.size() < connections_max &&
                ::bind(fresh.server, reinterpret_cast<sockaddr*>(&from), sizeof from) == 0 &&
                ::connect(fresh.server, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    // What a part has written at once goes on at once: no time is added that it did not take.
    const int on = 1;
    for (int fd : {fresh.client, fresh.server})
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char address[INET_ADDRSTRLEN] = "?";
    ::inet_ntop(AF_INET, &who.sin_addr, address, sizeof address);
    if (good) fmt::print(index_, "{} {} from {}\n", now_us(), fresh.number, address);
    good ? open_.push_back(fresh) : close_both(fresh);
  }

  /// False when this side has ended.
  bool pass(const pollfd& from, int to, const pair& of, char way) {
    if (from.revents == 0) return true;
    char part[part_bytes];
    ssize_t n = ::recv(from.fd, part, sizeof part, 0);
    if (n <= 0) return false;
    fmt::print(index_, "{} {} {} {}\n", now_us(), of.number, way, n);
    std::fwrite(part, 1, size_t(n), out_);
    for (ssize_t sent = 0; sent < n;) {
      ssize_t now = ::send(to, part + sent, size_t(n - sent), MSG_NOSIGNAL);
      if (now <= 0) return false;
      sent += now;
    }
    return true;
  }

  uint16_t to_ = 0;
  in_addr as_{};
  uint64_t connections_ = 0;
  int listener_ = -1;
  std::FILE *out_ = nullptr, *index_ = nullptr;
  std::list<pair> open_;
};

int join(const std::string& one, const std::string& other) {
  auto a = audit::pieces_in(one), b = audit::pieces_in(other);
  if (!a || !b) return refuse((a ? b : a).why().text);
  fmt::print("{}\n", audit::in_common(*a, *b));
  return 0;
}

const char* asker(const audit::tapped_exchange* e) { return e ? e->address.c_str() : "-"; }

/// A line for each request of `later`: when, bytes there and back, and who asked, as each way says.
int match(const std::string& earlier, const std::string& later, size_t least) {
  auto a = audit::exchanges_in(earlier), b = audit::exchanges_in(later);
  if (!a || !b) return refuse((a ? b : a).why().text);
  std::erase_if(*a, [least](const audit::tapped_exchange& e) { return e.asked_bytes < least; });
  for (const auto& e : *b) {
    const auto g = audit::guess_from(e, *a);
    fmt::print("{:.6f} {} {} {} {} {} {}\n", double(e.at_us) / 1e6, e.asked_bytes, e.said_bytes,
               asker(g.by_strings), asker(g.by_time), asker(g.by_length), asker(g.by_both));
  }
  return 0;
}

int watch(uint16_t from, uint16_t to, const std::string& as, const std::string& file) {
  in_addr own{};
  if (::inet_pton(AF_INET, as.c_str(), &own) != 1 || ntohl(own.s_addr) >> 24 != 127)
    return refuse(fmt::format("{}: is no address of loopback, 127.x.y.z", as));
  for (int s : {SIGINT, SIGTERM}) std::signal(s, [](int) { told_to_end = true; });
  traffic_tap tap;
  auto port = tap.start(from, to, own, file);
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
  auto as = std::make_shared<std::string>("127.0.0.1");
  auto least = std::make_shared<size_t>(0);
  records->add_option("PORT", *to, "of the server, on loopback")->required();
  records->add_option("--listen", *from, "a port on loopback; 0: any")->capture_default_str();
  records->add_option("--as", *as, "the address on loopback that the server sees")
      ->capture_default_str();
  records->add_option("--out", *file, "a new file for what passes, both ways")->required();
  records->footer(
      "Let its clients connect to the tap, and search the file; FILE.index has times, lengths and\n"
      "clients' addresses. Ctrl-C or SIGTERM ends it.\n"
      "Example:\n  lethe tap record 8200 --out gateway-saw");
  records->callback([=, &exit_code] { exit_code = watch(*from, *to, *as, *file); });

  auto* joins = taps->add_subcommand(
      "join", "How many strings of 16 bytes, text aside, two recordings have in common");
  joins->add_option("FILE", *file)->required();
  joins->add_option("OTHER", *other)->required();
  joins->footer(
      "What two parts were both told would join what each knows. 0: nothing of the kind.\n"
      "Example:\n  lethe tap join issuer-saw gateway-saw");
  joins->callback([=, &exit_code] { exit_code = join(*file, *other); });

  auto* matches = taps->add_subcommand(
      "match", "Who asked? Each request of a later recording, looked for in an earlier one");
  matches->add_option("FILE", *file)->required();
  matches->add_option("OTHER", *other)->required();
  matches->add_option("--least", *least, "FILE's requests of at least so many bytes")
      ->capture_default_str();
  matches->footer(
      "A line for each request of OTHER: seconds, bytes there and back, and the address whose\n"
      "request in FILE it is taken for: by common strings (-: none), by time (the last before), "
      "by\n"
      "length (the nearest), by both (the last of about that length).\n"
      "Example:\n  lethe tap match relay-saw gateway-saw");
  matches->callback([=, &exit_code] { exit_code = match(*file, *other, *least); });
}

}  // namespace lethe
