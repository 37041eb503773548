#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "runtime/base/temporary_folder.hpp"
#include "tests/unit/nccl_socket_ranks.hpp"

// Ranks that are processes.

namespace lethe::testing {

/// Files of a folder that processes share.
class folder_store final : public rank_store {
 public:
  explicit folder_store(std::string folder) : folder_(std::move(folder)) {}

  result<void> set(std::string_view key, bytes_view value) override {
    std::string path = path_of(key), part = path + "." + std::to_string(getpid());
    std::ofstream(part, std::ios::binary)
        .write(reinterpret_cast<const char*>(value.data()), std::streamsize(value.size()));
    std::filesystem::rename(part, path);
    return {};
  }
  result<std::vector<std::byte>> get(std::string_view key, deadline until) override {
    for (; std::chrono::steady_clock::now() < until;
         std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
      std::ifstream from(path_of(key), std::ios::binary);
      if (!from) continue;
      std::string all{std::istreambuf_iterator<char>(from), {}};
      auto* at = reinterpret_cast<const std::byte*>(all.data());
      return std::vector<std::byte>(at, at + all.size());
    }
    return fail("store: {} is not there", key);
  }
  void say(std::string_view key, std::string_view text) {
    (void)set(key, std::as_bytes(std::span(text)));
  }
  std::string await(std::string_view key) {
    auto got = get(key, std::chrono::steady_clock::now() + std::chrono::minutes(5));
    if (!got) return got.why().text;
    return {reinterpret_cast<const char*>(got->data()), got->size()};
  }

 private:
  std::string path_of(std::string_view key) const {
    std::string name(key);
    std::ranges::replace(name, '/', '_');
    return folder_ + "/" + name;
  }
  const std::string folder_;
};

/// Killed at the latest when it is forgotten.
class process {
 public:
  explicit process(const std::function<void()>& life) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    life();
    _exit(0);
  }
  process(process&& o) noexcept : pid_(std::exchange(o.pid_, -1)) {}
  ~process() {
    if (pid_ < 0) return;
    signal(SIGKILL);
    (void)ended();
  }
  void signal(int number) const { kill(pid_, number); }
  /// Waits; whether it ended as it should.
  bool ended() {
    int status = -1;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  pid_t pid_;
};

}  // namespace lethe::testing
