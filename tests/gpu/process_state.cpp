#include "tests/gpu/process_state.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace lethe::testing {
namespace {

namespace files = std::filesystem;

std::string first_line(const files::path& of) {
  std::string line;
  std::getline(std::ifstream(of) >> std::ws, line);
  return line;
}

/// CUDA starts threads when it likes, and they are no NCCL's.
std::map<int, std::string> threads_but_cudas() {
  std::map<int, std::string> found;
  for (const auto& task : files::directory_iterator("/proc/self/task")) {
    std::string name = first_line(task.path() / "comm");
    if (!name.starts_with("cuda")) found[std::stoi(task.path().filename())] = name;
  }
  return found;
}

std::set<long> own_sockets() {
  std::set<long> found;
  for (const auto& open : files::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the folder's own descriptor
    std::string to = files::read_symlink(open.path(), gone);
    if (to.starts_with("socket:[")) found.insert(std::stol(to.substr(8)));
  }
  return found;
}

/// An address as the kernel lists it: words of 32 bits in hexadecimal, each in the host's order.
std::string address_of(const std::string& listed) {
  uint32_t words[4] = {};
  size_t colon = listed.find(':');
  for (size_t i = 0; i * 8 < colon; ++i)
    words[i] = uint32_t(std::stoul(listed.substr(i * 8, 8), nullptr, 16));
  char text[INET6_ADDRSTRLEN];
  inet_ntop(colon == 8 ? AF_INET : AF_INET6, words, text, sizeof text);
  return fmt::format("{} port {}", text, std::stoul(listed.substr(colon + 1), nullptr, 16));
}

std::map<long, std::string> own_listeners() {
  constexpr const char* listens = "0A";
  std::map<long, std::string> found;
  std::set<long> own = own_sockets();
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    std::string line;
    for (std::getline(lines, line); std::getline(lines, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state, skipped;
      long inode = 0;
      words >> number >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) words >> skipped;
      if (words >> inode && state == listens && own.contains(inode))
        found[inode] = address_of(local);
    }
  }
  return found;
}

template <class Key>
std::map<Key, std::string> without(std::map<Key, std::string> all,
                                   const std::map<Key, std::string>& those) {
  std::erase_if(all, [&those](const auto& one) { return those.contains(one.first); });
  return all;
}

}  // namespace

process_state process_state::now() { return {threads_but_cudas(), own_listeners()}; }

process_state process_state::beyond(const process_state& before) const {
  return {without(threads, before.threads), without(listeners, before.listeners)};
}

std::string process_state::text() const {
  std::string all;
  for (const auto& [number, name] : threads) all += fmt::format("thread {} ({}); ", number, name);
  for (const auto& [inode, where] : listeners) all += fmt::format("listens at {}; ", where);
  return all;
}

}  // namespace lethe::testing
