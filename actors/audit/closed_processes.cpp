#include "actors/audit/closed_processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "runtime/audit/memory_scan.hpp"
#include "runtime/hardening/harden.hpp"

namespace lethe::audit {

namespace {

/// What could be done to a process.
struct openness {
  bool read = false, traced = false, core = false, new_code = false, swapped = false;

  std::string text() const {
    std::string all;
    for (auto [is, what] : {std::pair{read, "its memory can be read"},
                            {traced, "it can be traced"},
                            {core, "it may write a core"},
                            {new_code, "it may get new calls or code"},
                            {swapped, "nothing of it is locked"}})
      if (is) all += (all.empty() ? "" : ", ") + std::string(what);
    return all;
  }
};

/// By a process of this user that may do nothing special: bit 0 if it reads, bit 1 if it traces.
int tried_on(pid_t target) {
  const std::string memory = fmt::format("/proc/{}/mem", target);
  const pid_t reader = ::fork();
  if (reader == 0) {
    if (!give_up_capabilities()) ::_exit(64);
    int can = ::open(memory.c_str(), O_RDONLY | O_CLOEXEC) >= 0 ? 1 : 0;
    if (::ptrace(PTRACE_SEIZE, target, 0, 0) == 0) can |= 2;
    ::_exit(can);
  }
  int status = 0;
  ::waitpid(reader, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 64;
}

std::string line_of(const std::string& path, const std::string& begin) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(begin)) return line.substr(begin.size());
  return {};
}

openness openness_of(pid_t pid) {
  const std::string status = fmt::format("/proc/{}/status", pid);
  const int tried = tried_on(pid);
  return {.read = (tried & (1 | 64)) != 0,
          .traced = (tried & (2 | 64)) != 0,
          .core = line_of(fmt::format("/proc/{}/limits", pid), "Max core file size")
                      .find_first_of("123456789u") != std::string::npos,
          .new_code = line_of(status, "Seccomp:").find('2') == std::string::npos,
          .swapped = std::atol(line_of(status, "VmLck:").c_str()) == 0};
}

struct found {
  size_t processes = 0, open = 0;
  std::string first;
};

found look_at(const std::vector<pid_t>& all) {
  found f{.processes = all.size()};
  for (pid_t p : all) {
    auto text = openness_of(p).text();
    if (text.empty()) continue;
    ++f.open;
    if (f.first.empty()) f.first = text;
  }
  return f;
}

/// A lab cluster does none of it.
control lab_control(const embedded_settings& s) {
  control c{.without = "the strict profile"};
  auto folder = temporary_folder::make("lethe-audit");
  if (!folder) return c;
  auto file = folder->write("lab.toml", fmt::format("name = \"open\"\nprofile = \"lab\"\n"
                                                    "[model]\npath = \"{}\"\n",
                                                    std::filesystem::absolute(s.model).string()));
  if (!file) return c;
  auto lab = child::start({s.program, "up", *file}, folder->path().string());
  if (!lab || !(*lab)->tells("ready: ", std::chrono::seconds(60))) {
    c.measured = "it does not come up";
    return c;
  }
  auto seen = look_at(family_of((*lab)->pid()));
  c.found = seen.open == seen.processes;
  c.measured = fmt::format("{} of {} processes open: {}", seen.open, seen.processes, seen.first);
  return c;
}

}  // namespace

finding measure_closed_processes(embedded_cluster& strict, const embedded_settings& settings) {
  finding f{.promise = "P",
            .attacks = "A2",
            .what = "no process can be read, traced or dumped",
            .bound = "0 of them"};
  auto seen = look_at(strict.processes());
  f.said = seen.open == 0 ? verdict::held : verdict::broken;
  f.measured = fmt::format("{} of {} processes open{}", seen.open, seen.processes,
                           seen.open ? ": " + seen.first : "");
  f.note =
      "Tried by a process of the same user without privileges; cores, filtered calls and locked "
      "memory as the kernel tells. Root of the host reads memory all the same.";
  f.controls.push_back(lab_control(settings));
  return f;
}

}  // namespace lethe::audit
