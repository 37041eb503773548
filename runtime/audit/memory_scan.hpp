#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace lethe::audit {

/// Bytes that should be nowhere, and what they are. Eight at least.
struct needle {
  std::string form, bytes;
};

/// The forms that a word of at least twelve ASCII letters takes on its way.
std::vector<needle> forms_of_word(const std::string& word);
/// Runs of eight ids, as numbers of 16, 32 and 64 bits.
std::vector<needle> forms_of_ids(const std::vector<uint64_t>& ids);

/// Where one was found: an address of a process, or an offset in what `place` names.
struct trace_of {
  pid_t pid;
  uint64_t at;
  std::string form, place;
  bool operator==(const trace_of&) const = default;
};

/// What a search looked at.
struct searched {
  uint64_t bytes = 0, descriptors = 0, files = 0;
  uint64_t swapped = 0;  // bytes that were not there to be read
};

/// Finds needles in bytes that come piece by piece.
class needle_finder {
 public:
  explicit needle_finder(std::vector<needle> all);
  size_t longest() const { return longest_; }
  size_t count() const { return all_.size(); }
  void search(std::string_view in,
              const std::function<void(size_t at, const needle&)>& found) const;

 private:
  std::vector<needle> all_;
  std::unordered_multimap<uint64_t, size_t> by_begin_;  // of the first eight bytes
  std::vector<bool> maybe_ = std::vector<bool>(1 << 16);
  size_t longest_ = 8;
};

/// A process and all that it started.
std::vector<pid_t> family_of(pid_t eldest);

/// None of them runs while this lives.
class stopped {
 public:
  explicit stopped(std::vector<pid_t> all);
  ~stopped();
  stopped(const stopped&) = delete;

 private:
  std::vector<pid_t> all_;
};

/// A search over processes and files; traces add up.
class memory_search {
 public:
  explicit memory_search(const needle_finder& finder);
  /// All of a process's memory that can be read, its pipes, and the files that it has open. Stop it
  /// first. Needs to be allowed to: its parent's user and CAP_SYS_PTRACE.
  void process(pid_t pid);
  void folder(const std::filesystem::path& folder);
  /// All of that, with none of the processes running.
  void stopped_processes(const std::vector<pid_t>& all,
                         const std::vector<std::filesystem::path>& folders = {});
  void file(const std::filesystem::path& file, const std::string& place);

  const std::vector<trace_of>& traces() const { return traces_; }
  /// Those of the needles that have one.
  std::vector<needle> needles_found() const;
  const searched& looked() const { return looked_; }

 private:
  void memory(pid_t pid);
  void descriptors(pid_t pid);
  void pipe(pid_t pid, const std::filesystem::path& end, const std::string& name);
  void keep(pid_t pid, uint64_t at, const needle& n, const std::string& place);
  void from(int fd, uint64_t begin, uint64_t end, pid_t pid, const std::string& place);

  const needle_finder& finder_;
  std::string piece_;
  std::vector<trace_of> traces_;
  std::unordered_set<const needle*> found_;
  searched looked_;
};

/// For people: how many, and where the first lie.
std::string text_of(const std::vector<trace_of>& traces);

}  // namespace lethe::audit
