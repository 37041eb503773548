#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "simdjson.h"
#include "tests/places.hpp"

extern char** environ;

namespace lethe {

/// What one run of the built program left behind.
struct finished {
  int exit_code = -1;  // -1: it did not exit by itself
  std::string out, err;

  size_t error_lines() const { return size_t(std::count(err.begin(), err.end(), '\n')); }
};

/// A folder for one test, gone with it.
class scratch_folder {
 public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "lethe-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return *this / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs the built `lethe` with standard input from `input`.
inline finished run_lethe(std::vector<std::string> arguments, const std::string& input = {}) {
  scratch_folder folder;
  std::string in = folder.write("in", input), out = folder / "out", err = folder / "err";
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  arguments.insert(arguments.begin(), places::program);
  std::vector<char*> words;
  for (auto& a : arguments) words.push_back(a.data());
  words.push_back(nullptr);
  pid_t child = 0;
  int failed = posix_spawn(&child, places::program, &files, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child) return {};
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
}

/// Runs it with standard output on a pipe that nobody reads.
inline finished run_lethe_unread(const std::vector<std::string>& arguments) {
  std::string command = "exec 3>&1; { " + std::string(places::program);
  for (const auto& a : arguments) command += " '" + a + "'";
  scratch_folder folder;
  std::string err = folder / "err";
  command += " 2>" + err + "; echo $? >&3; } | true";
  FILE* shell = ::popen(command.c_str(), "r");
  if (!shell) return {};
  int code = -1;
  if (std::fscanf(shell, "%d", &code) != 1) code = -1;
  ::pclose(shell);
  return {code, {}, read_file(err)};
}

/// A JSON answer of the program, kept with the parser that owns it.
struct json_answer {
  explicit json_answer(const std::string& text) : padded(text) {
    valid = !parser.parse(padded).get(root);
  }

  std::vector<uint64_t> numbers(const char* key) const {
    std::vector<uint64_t> all;
    simdjson::dom::array items;
    if (!valid || root[key].get_array().get(items)) return all;
    for (auto item : items) all.push_back(item.get_uint64().value_unsafe());
    return all;
  }
  std::string text(const char* key) const {
    std::string_view value;
    if (!valid || root[key].get_string().get(value)) return "(no text)";
    return std::string(value);
  }

  simdjson::dom::parser parser;
  simdjson::padded_string padded;
  simdjson::dom::element root;
  bool valid = false;
};

}  // namespace lethe
