#pragma once

#include <csignal>

#include "tests/e2e/command.hpp"

namespace lethe {

/// The program in the background, which may wait for long.
class running_lethe {
 public:
  /// `in`: what it reads, if that is not nothing.
  explicit running_lethe(std::vector<std::string> words, int in = -1) {
    std::string out = folder_ / "out", err = folder_ / "err";
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
    if (in >= 0) posix_spawn_file_actions_adddup2(&files, in, 0);
    words.insert(words.begin(), places::program);
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    posix_spawn(&pid_, places::program, &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
  }
  ~running_lethe() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  running_lethe(const running_lethe&) = delete;
  running_lethe& operator=(const running_lethe&) = delete;

  std::string out() const { return read_file(folder_ / "out"); }
  std::string err() const { return read_file(folder_ / "err"); }
  finished wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out(), err()};
  }

 private:
  scratch_folder folder_;
  pid_t pid_ = -1;
};

}  // namespace lethe
