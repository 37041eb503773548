#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace lethe {

/// Why a group ended.
enum class ending : uint8_t {
  none,
  aborted,
  late,
  closed,
  changed,
  out_of_order,
  differing,
  nccl_failed,
  nccl_late,
};

/// What of a group's end one rank tells the others.
struct last_word {
  ending why = ending::none;
  uint32_t whose = 0;   // the rank that it is about, as all groups of the epoch count
  uint32_t number = 0;  // how long it was waited for, in ms; of nccl_failed: what NCCL said
  uint8_t during = 0;   // of NCCL: which call (nccl_call)

  uint64_t packed() const {
    return uint64_t(why) << 56 | uint64_t{during} << 48 | uint64_t{whose & 0xffff} << 32 | number;
  }
  static last_word unpack(uint64_t from);
  std::string text() const;
};

/// What ended the first of several groups that end together.
class group_fate {
 public:
  /// The first word stays.
  void set(last_word word);
  /// Nothing so far (ending::none), or that word.
  last_word get() const;

 private:
  mutable std::mutex mutex_;
  last_word first_;
};

}  // namespace lethe
