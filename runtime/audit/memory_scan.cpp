#include "runtime/audit/memory_scan.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/base/base64.hpp"
#include "runtime/base/owned_fd.hpp"

namespace lethe::audit {

namespace fs = std::filesystem;

namespace {

constexpr size_t piece_bytes = size_t{4} << 20;

/// Each character in so many bytes, the lowest first.
std::string widened(std::string_view text, size_t bytes) {
  std::string out;
  for (char c : text) out += c + std::string(bytes - 1, '\0');
  return out;
}

uint64_t first_eight(const char* at) {
  uint64_t n = 0;
  std::memcpy(&n, at, 8);
  return n;
}

size_t hash(uint64_t n) { return size_t(n * 0x9e3779b97f4a7c15u >> 48); }

std::string proc(pid_t pid, const char* what) { return fmt::format("/proc/{}/{}", pid, what); }

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class open_file {
 public:
  open_file(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  int get() const { return fd_.get(); }
  bool is(mode_t kind) const {
    struct stat info {};
    return get() >= 0 && ::fstat(get(), &info) == 0 && (info.st_mode & S_IFMT) == kind;
  }

 private:
  owned_fd fd_;
};

bool is_stopped(pid_t pid) {
  const std::string stat = text_of_file(proc(pid, "stat"));
  const size_t end = stat.rfind(')');
  return end == stat.npos || stat.substr(end + 1).starts_with(" T");  // gone is quiet, too
}

}  // namespace

std::vector<needle> forms_of_word(const std::string& word) {
  std::vector<needle> all = {
      {"text, its begin", word.substr(0, 8)},
      {"text, its end", word.substr(word.size() - 8)},
      {"UTF-16", widened(word.substr(0, 6), 2)},
      {"UTF-32", widened(word.substr(0, 6), 4)},
      {"JSON, escaped", fmt::format("\\u{:04x}\\u{:04x}", word[0], word[1])}};
  for (size_t phase : {0, 1, 2}) {
    const size_t whole = (word.size() - phase) / 3 * 3;  // what comes behind changes the rest
    all.push_back({"base64", to_base64(as_bytes(word.substr(phase, whole)))});
  }
  return all;
}

std::vector<needle> forms_of_ids(const std::vector<uint64_t>& ids) {
  std::vector<needle> all;
  for (size_t bytes : {2, 4, 8})
    for (size_t from = 0; from + 8 <= ids.size(); ++from) {
      std::string run;
      for (size_t i = from; i < from + 8; ++i)
        for (size_t b = 0; b < bytes; ++b) run += char(ids[i] >> (8 * b) & 255);
      all.push_back({fmt::format("ids of {} bits", 8 * bytes), run});
    }
  return all;
}

needle_finder::needle_finder(std::vector<needle> all) : all_(std::move(all)) {
  for (size_t i = 0; i < all_.size(); ++i) {
    const uint64_t begin = first_eight(all_[i].bytes.data());
    by_begin_.emplace(begin, i);
    maybe_[hash(begin)] = true;
    longest_ = std::max(longest_, all_[i].bytes.size());
  }
}

void needle_finder::search(std::string_view in,
                           const std::function<void(size_t, const needle&)>& found) const {
  for (size_t at = 0; at + 8 <= in.size(); ++at) {
    const uint64_t begin = first_eight(in.data() + at);
    if (!maybe_[hash(begin)]) continue;
    for (auto [i, end] = by_begin_.equal_range(begin); i != end; ++i)
      if (in.substr(at).starts_with(all_[i->second].bytes)) found(at, all_[i->second]);
  }
}

std::vector<pid_t> family_of(pid_t eldest) {
  std::vector<pid_t> all{eldest};
  for (size_t i = 0; i < all.size(); ++i) {
    std::error_code gone;
    for (const auto& thread : fs::directory_iterator(proc(all[i], "task"), gone)) {
      std::istringstream children(text_of_file(thread.path() / "children"));
      for (pid_t child; children >> child;) all.push_back(child);
    }
  }
  return all;
}

stopped::stopped(std::vector<pid_t> all) : all_(std::move(all)) {
  for (pid_t p : all_) ::kill(p, SIGSTOP);
  for (pid_t p : all_)
    for (int i = 0; i < 5000 && !is_stopped(p); ++i) ::usleep(1000);
}

stopped::~stopped() {
  for (pid_t p : all_) ::kill(p, SIGCONT);
}

memory_search::memory_search(const needle_finder& finder)
    : finder_(finder), piece_(piece_bytes + finder.longest(), '\0') {}

void memory_search::keep(pid_t pid, uint64_t at, const needle& n, const std::string& place) {
  traces_.push_back({pid, at, n.form, place});
  found_.insert(&n);
}

std::vector<needle> memory_search::needles_found() const {
  std::vector<needle> all;
  for (const needle* n : found_) all.push_back(*n);
  return all;
}

/// Reads until `end`, or where nothing more can be read.
void memory_search::from(int fd, uint64_t begin, uint64_t end, pid_t pid,
                         const std::string& place) {
  for (uint64_t at = begin; at < end; at += piece_bytes) {
    const ssize_t got =
        ::pread(fd, piece_.data(), std::min<uint64_t>(piece_.size(), end - at), off_t(at));
    if (got <= 0) break;
    looked_.bytes += std::min(uint64_t(got), uint64_t{piece_bytes});
    finder_.search({piece_.data(), size_t(got)}, [&](size_t where, const needle& n) {
      if (where < piece_bytes) keep(pid, at + where, n, place);
    });
  }
}

void memory_search::memory(pid_t pid) {
  open_file memory(proc(pid, "mem"), O_RDONLY);
  std::istringstream maps(text_of_file(proc(pid, "smaps")));
  for (std::string line; std::getline(maps, line);) {
    unsigned long from_at = 0, to = 0, swapped = 0;
    char mode[8] = {};
    if (std::sscanf(line.c_str(), "Swap: %lu", &swapped) == 1) looked_.swapped += swapped << 10;
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &from_at, &to, mode) != 3 || mode[0] != 'r')
      continue;
    from(memory.get(), from_at, to, pid, line);
  }
}

/// What waits in a pipe is copied, not taken.
void memory_search::pipe(pid_t pid, const fs::path& end, const std::string& name) {
  open_file there(end, O_RDONLY | O_NONBLOCK);
  int own[2];
  if (!there.is(S_IFIFO) || ::pipe2(own, O_CLOEXEC | O_NONBLOCK) != 0) return;
  ::fcntl(own[1], F_SETPIPE_SZ, 1 << 20);
  std::string bytes(1 << 20, '\0');
  const ssize_t copied = ::tee(there.get(), own[1], bytes.size(), SPLICE_F_NONBLOCK);
  size_t have = 0;
  while (copied > 0 && have < size_t(copied)) {
    const ssize_t got = ::read(own[0], bytes.data() + have, bytes.size() - have);
    if (got <= 0) break;
    have += size_t(got);
  }
  ::close(own[0]);
  ::close(own[1]);
  looked_.bytes += have;
  finder_.search({bytes.data(), have},
                 [&](size_t where, const needle& n) { keep(pid, where, n, name); });
}

void memory_search::descriptors(pid_t pid) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(proc(pid, "fd"), gone)) {
    const std::string name = fs::read_symlink(entry.path(), gone).string();
    ++looked_.descriptors;
    if (name.starts_with("pipe:")) pipe(pid, entry.path(), name);
    if (!name.starts_with("/") || name.starts_with("/dev/") || name.starts_with("/proc/")) continue;
    open_file there(entry.path(), O_RDONLY | O_NONBLOCK);  // deleted ones and memory files, too
    if (there.is(S_IFREG)) from(there.get(), 0, UINT64_MAX >> 1, pid, name);
  }
}

void memory_search::process(pid_t pid) {
  memory(pid);
  descriptors(pid);
}

void memory_search::file(const fs::path& path, const std::string& place) {
  open_file there(path, O_RDONLY | O_NONBLOCK);
  if (!there.is(S_IFREG)) return;
  ++looked_.files;
  from(there.get(), 0, UINT64_MAX >> 1, 0, place);
}

void memory_search::folder(const fs::path& folder) {
  std::error_code gone;
  for (const auto& f : fs::recursive_directory_iterator(folder, gone))
    file(f.path(), f.path().string());
}

void memory_search::stopped_processes(const std::vector<pid_t>& all,
                                      const std::vector<fs::path>& folders) {
  const stopped quiet(all);
  for (pid_t p : all) process(p);
  for (const auto& f : folders) folder(f);
}

std::string text_of(const std::vector<trace_of>& traces) {
  std::string all = fmt::format("{} traces\n", traces.size());
  for (size_t i = 0; i < std::min<size_t>(traces.size(), 20); ++i)
    all += fmt::format("  process {} at {:x}: {} in {}\n", traces[i].pid, traces[i].at,
                       traces[i].form, traces[i].place);
  return all;
}

}  // namespace lethe::audit
