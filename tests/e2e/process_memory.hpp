#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <map>

#include "tests/e2e/command.hpp"

// What a test looks for in the memory of other processes.
namespace lethe {

/// Bytes that should be nowhere, and what they are. Eight at least.
struct needle {
  std::string form, bytes;
};

/// Where one was found.
struct trace_of {
  pid_t pid;
  uint64_t at;
  std::string form, mapping;
};

inline std::string base64_of(std::string_view text) {
  constexpr const char* letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i + 3 <= text.size(); i += 3) {
    uint32_t three = uint32_t(uint8_t(text[i])) << 16 | uint32_t(uint8_t(text[i + 1])) << 8 |
                     uint8_t(text[i + 2]);
    for (int shift = 18; shift >= 0; shift -= 6) out += letters[three >> shift & 63];
  }
  return out;
}

/// Each character in so many bytes, the lowest first.
inline std::string widened(std::string_view text, size_t bytes) {
  std::string out;
  for (char c : text) out += c + std::string(bytes - 1, '\0');
  return out;
}

/// The forms that a word of at least twelve ASCII letters takes on its way.
inline std::vector<needle> forms_of_word(const std::string& word) {
  std::vector<needle> all = {{"text, its begin", word.substr(0, 8)},
                             {"text, its end", word.substr(word.size() - 8)},
                             {"UTF-16", widened(word.substr(0, 6), 2)},
                             {"UTF-32", widened(word.substr(0, 6), 4)}};
  char escaped[20];
  std::snprintf(escaped, sizeof escaped, "\\u%04x\\u%04x", word[0], word[1]);
  all.push_back({"JSON, escaped", escaped});
  for (size_t phase : {0, 1, 2}) all.push_back({"base64", base64_of(word.substr(phase))});
  return all;
}

/// Runs of eight ids, as numbers of 16, 32 and 64 bits.
inline std::vector<needle> forms_of_ids(const std::vector<uint64_t>& ids) {
  std::vector<needle> all;
  for (size_t bytes : {2, 4, 8})
    for (size_t from = 0; from + 8 <= ids.size(); ++from) {
      std::string run;
      for (size_t i = from; i < from + 8; ++i)
        for (size_t b = 0; b < bytes; ++b) run += char(ids[i] >> (8 * b) & 255);
      all.push_back({"ids of " + std::to_string(8 * bytes) + " bits", run});
    }
  return all;
}

/// Finds needles in bytes that come piece by piece.
class needle_finder {
 public:
  explicit needle_finder(std::vector<needle> all) : all_(std::move(all)) {
    for (size_t i = 0; i < all_.size(); ++i) {
      const uint64_t begin = first_eight(all_[i].bytes.data());
      by_begin_.emplace(begin, i);
      maybe_[hash(begin)] = true;
      longest_ = std::max(longest_, all_[i].bytes.size());
    }
  }
  size_t longest() const { return longest_; }
  template <class Found>
  void search(std::string_view in, Found found) const {
    for (size_t at = 0; at + 8 <= in.size(); ++at) {
      const uint64_t begin = first_eight(in.data() + at);
      if (!maybe_[hash(begin)]) continue;
      for (auto [i, end] = by_begin_.equal_range(begin); i != end; ++i)
        if (in.substr(at).starts_with(all_[i->second].bytes)) found(at, all_[i->second]);
    }
  }

 private:
  static uint64_t first_eight(const char* at) {
    uint64_t n = 0;
    std::memcpy(&n, at, 8);
    return n;
  }
  static size_t hash(uint64_t n) { return size_t(n * 0x9e3779b97f4a7c15u >> 48); }

  std::vector<needle> all_;
  std::multimap<uint64_t, size_t> by_begin_;
  std::vector<bool> maybe_ = std::vector<bool>(1 << 16);
  size_t longest_ = 8;
};

/// A process and all that it started.
inline std::vector<pid_t> family_of(pid_t eldest) {
  std::vector<pid_t> all{eldest};
  for (size_t i = 0; i < all.size(); ++i) {
    std::error_code gone;
    for (const auto& thread :
         std::filesystem::directory_iterator("/proc/" + std::to_string(all[i]) + "/task", gone)) {
      std::istringstream children(read_file(thread.path() / "children"));
      for (pid_t child; children >> child;) all.push_back(child);
    }
  }
  return all;
}

/// None of them runs while this lives.
class stopped {
 public:
  explicit stopped(std::vector<pid_t> all) : all_(std::move(all)) {
    for (pid_t p : all_) ::kill(p, SIGSTOP);
    for (pid_t p : all_)
      for (int i = 0; i < 5000 && !is_stopped(p); ++i) ::usleep(1000);
  }
  ~stopped() {
    for (pid_t p : all_) ::kill(p, SIGCONT);
  }
  stopped(const stopped&) = delete;

 private:
  static bool is_stopped(pid_t p) {
    const std::string stat = read_file("/proc/" + std::to_string(p) + "/stat");
    return stat.substr(stat.rfind(')') + 1).starts_with(" T");
  }
  std::vector<pid_t> all_;
};

/// In all of a process's memory that can be read. `bytes` grows by what was looked at.
inline void search_memory(pid_t pid, const needle_finder& finder, std::vector<trace_of>& traces,
                          uint64_t& bytes) {
  const std::string proc = "/proc/" + std::to_string(pid);
  const int memory = ::open((proc + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  constexpr size_t piece_bytes = size_t{4} << 20;
  std::string piece(piece_bytes + finder.longest(), '\0');
  std::istringstream maps(read_file(proc + "/maps"));
  for (std::string line; std::getline(maps, line);) {
    uint64_t from = 0, to = 0;
    char mode[8] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &from, &to, mode) != 3 || mode[0] != 'r') continue;
    for (uint64_t at = from; at < to; at += piece_bytes) {
      const ssize_t got =
          ::pread(memory, piece.data(), std::min<uint64_t>(piece.size(), to - at), off_t(at));
      if (got <= 0) break;  // the kernel's own pages
      bytes += std::min(uint64_t(got), uint64_t{piece_bytes});
      finder.search({piece.data(), size_t(got)}, [&](size_t where, const needle& n) {
        if (where < piece_bytes) traces.push_back({pid, at + where, n.form, line});
      });
    }
  }
  ::close(memory);
}

inline void search_files(const std::string& folder, const needle_finder& finder,
                         std::vector<trace_of>& traces) {
  for (const auto& f : std::filesystem::recursive_directory_iterator(folder))
    if (f.is_regular_file())
      finder.search(read_file(f.path()), [&](size_t where, const needle& n) {
        traces.push_back({0, where, n.form, f.path().string()});
      });
}

inline std::string text_of(const std::vector<trace_of>& traces) {
  std::string all = std::to_string(traces.size()) + " traces\n";
  for (size_t i = 0; i < std::min<size_t>(traces.size(), 20); ++i) {
    char at[32];
    std::snprintf(at, sizeof at, "%lx", traces[i].at);
    all += "  process " + std::to_string(traces[i].pid) + " at " + at + ": " + traces[i].form +
           " in " + traces[i].mapping + "\n";
  }
  return all;
}

}  // namespace lethe
