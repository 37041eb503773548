#pragma once

#include "tests/e2e/cluster.hpp"

namespace lethe {

/// `lethe tap record` before a server: passes everything on, and keeps what it saw.
class tap {
 public:
  explicit tap(uint16_t to) {
    std::string out = folder_ / "out", port = std::to_string(to), seen = folder_ / "seen";
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const char* words[] = {places::program, "tap",        "record", port.c_str(),
                           "--out",         seen.c_str(), nullptr};
    posix_spawn(&pid_, places::program, &files, nullptr, const_cast<char**>(words), environ);
    posix_spawn_file_actions_destroy(&files);
    for (int i = 0; i < 1000 && port_ == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      auto said = read_file(out);
      if (said.ends_with('\n')) port_ = uint16_t(std::atoi(said.c_str() + said.rfind(':') + 1));
    }
  }
  ~tap() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  tap(const tap&) = delete;
  tap& operator=(const tap&) = delete;

  uint16_t port() const { return port_; }
  std::string file() const { return folder_ / "seen"; }
  std::string seen() const { return read_file(file()); }
  bool saw(const std::string& what) const { return seen().find(what) != std::string::npos; }

 private:
  scratch_folder folder_;
  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

}  // namespace lethe
