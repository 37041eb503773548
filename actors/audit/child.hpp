#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"

namespace lethe::audit {

/// A program that runs beside this one; what it says is kept in memory. It ends, killed if need be,
/// when this goes.
class child {
 public:
  /// `runtime_folder` is where it keeps its control socket; `variables` are "NAME=value".
  static result<std::unique_ptr<child>> start(const std::vector<std::string>& words,
                                              const std::string& runtime_folder,
                                              const std::vector<std::string>& variables = {});
  ~child();
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  pid_t pid() const { return pid_; }
  std::string out() const;
  std::string err() const;
  /// Its exit status, 128 and more for a signal's; nothing if it hasn't ended in time.
  std::optional<int> wait(std::chrono::seconds patience);
  bool is_running();
  /// Waits until it has written this to standard error.
  bool tells(const std::string& what, std::chrono::seconds patience);
  /// Where it listens as that, once it has said so.
  result<std::string> url(const std::string& role, std::chrono::seconds patience);

 private:
  child() = default;
  bool reap(int flags);

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  std::optional<int> status_;
};

/// A program from its start to its end: standard output, or what went wrong.
result<std::string> run_child(const std::vector<std::string>& words,
                              const std::string& runtime_folder,
                              const std::vector<std::string>& variables = {});

}  // namespace lethe::audit
