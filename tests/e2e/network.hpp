#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "tests/e2e/command.hpp"

namespace lethe {

/// Runs `ip` in the namespace of this thread; what it complained of.
inline std::string run_ip(std::vector<std::string> words) {
  scratch_folder folder;
  std::string err = folder / "err";
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  words.insert(words.begin(), "ip");
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  int failed = ::posix_spawnp(&child, "ip", &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed) return "`ip` (package iproute2) cannot be run: " + std::string(std::strerror(failed));
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string all;
  for (const auto& w : words) all += w + " ";
  return all + "failed: " + read_file(err);
}

/// A machine of its own as far as the network goes: a namespace that lives as long as someone is
/// in it. It has no name in the file system, so nothing is left behind however the test ends.
class net_host {
 public:
  net_host(int ns, std::string link, std::string address)
      : address(std::move(address)), ns_(ns), link_(std::move(link)) {}
  net_host(net_host&& o) noexcept
      : address(std::move(o.address)), ns_(std::exchange(o.ns_, -1)), link_(std::move(o.link_)) {}
  ~net_host() {
    if (ns_ >= 0) ::close(ns_);
  }

  /// Does something on that machine; processes that it starts stay there.
  template <class Do>
  auto on(Do&& what) const {
    using result = std::invoke_result_t<Do>;
    std::optional<std::conditional_t<std::is_void_v<result>, bool, result>> done;
    std::thread there([&] {
      if (::setns(ns_, CLONE_NEWNET) != 0) std::abort();
      if constexpr (std::is_void_v<result>)
        what();
      else
        done.emplace(what());
    });
    there.join();
    if constexpr (!std::is_void_v<result>) return *std::move(done);
  }

  /// Pulls its cable out, or in again: packets are lost, nobody is told.
  std::string cable(bool in) const { return run_ip({"link", "set", link_, in ? "up" : "down"}); }

  /// The switch's end of its cable.
  const std::string& link() const { return link_; }

  std::string address;

 private:
  int ns_;
  std::string link_;
};

/// All that goes through a host's cable, as the switch sees it.
class wiretap {
 public:
  explicit wiretap(const std::string& link) {
    fd_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    const int room = 64 << 20;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    sockaddr_ll at{.sll_family = AF_PACKET,
                   .sll_protocol = htons(ETH_P_ALL),
                   .sll_ifindex = int(::if_nametoindex(link.c_str()))};
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) std::abort();
    thread_ = std::thread([this] { listen(); });
  }
  ~wiretap() {
    stop();
    ::close(fd_);
  }
  /// Every packet so far, one behind the other.
  const std::string& heard() {
    stop();
    return heard_;
  }

 private:
  void stop() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void listen() {
    std::string packet(size_t{1} << 17, '\0');
    // What was sent before somebody asked is here at once.
    for (int after = 0; after < 1000; after += stops_) {
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, 50) == 0) {
        if (stops_) return;
        continue;
      }
      const ssize_t n = ::recv(fd_, packet.data(), packet.size(), 0);
      if (n > 0) heard_.append(packet, 0, size_t(n));
    }
  }

  int fd_;
  std::string heard_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

/// Hosts around one switch. Root or not: without it the process becomes root of a user namespace.
class small_network {
 public:
  /// Moves this process into it; before it has a second thread. Why it cannot be, or empty.
  std::string begin() {
    uid_t uid = ::getuid();
    gid_t gid = ::getgid();
    if (::geteuid() != 0 || ::unshare(CLONE_NEWNET) != 0) {
      if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return "no network namespace can be made here: " + std::string(std::strerror(errno));
      std::ofstream("/proc/self/setgroups") << "deny";
      std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1";
      std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1";
    }
    if (auto why = run_ip({"link", "set", "lo", "up"}); !why.empty()) return why;
    if (auto why = run_ip({"link", "add", "switch", "type", "bridge"}); !why.empty()) return why;
    return run_ip({"link", "set", "switch", "up"});
  }

  /// 10.77.0.1, 10.77.0.2, ... A host that could not be made has no address.
  net_host add() {
    std::string link = "host" + std::to_string(++hosts_);
    std::string address = "10.77.0." + std::to_string(hosts_);
    int ns = -1;
    std::string why;
    std::thread([&] {
      if (::unshare(CLONE_NEWNET) != 0) return;
      ns = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    }).join();
    auto here = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(ns);
    why += run_ip({"link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", here});
    why += run_ip({"link", "set", link, "master", "switch", "up"});
    net_host made(ns, link, address);
    made.on([&] {
      why += run_ip({"link", "set", "lo", "up"});
      why += run_ip({"addr", "add", address + "/24", "dev", "eth0"});
      why += run_ip({"link", "set", "eth0", "up"});
    });
    if (!why.empty()) std::fprintf(stderr, "%s\n", why.c_str());
    if (!why.empty()) made.address.clear();
    return made;
  }

 private:
  int hosts_ = 0;
};

}  // namespace lethe
