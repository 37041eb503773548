#pragma once

#include <filesystem>
#include <optional>

#include "runtime/base/result.hpp"

namespace lethe {

/// `lethe up --detach`: a child goes on in a session of its own, and what it says goes to a log,
/// which the shell's process repeats until the child is up. If that ends before, so does the child.
class detached_start {
 public:
  detached_start() = default;
  ~detached_start();
  detached_start(const detached_start&) = delete;
  detached_start& operator=(const detached_start&) = delete;

  /// The exit code in the process that has waited; nothing in the child, which goes on. To be
  /// called before there are threads.
  result<std::optional<int>> split(const std::filesystem::path& log);
  /// True in a child that somebody still waits for.
  bool awaited() const { return tell_ >= 0; }
  /// Whoever waits ends with `code`.
  void tell(int code);

 private:
  int tell_ = -1;
};

/// Tells systemd, if it is what started this (Type=notify), e.g. "READY=1".
void tell_systemd(const char* state);

}  // namespace lethe
