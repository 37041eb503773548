#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace lethe {

/// Finds stop strings in text that arrives in pieces, and holds back what may yet become one.
/// The text ends as soon as any stop string is complete; where two are complete at the same byte,
/// the longer one. Does not depend on how the text was cut into pieces.
class stop_matcher {
 public:
  /// Refuses too many, too long and empty ones. Copies them into `memory`.
  static result<stop_matcher> make(std::span<const std::string_view> stops, bool include_stop,
                                   std::pmr::memory_resource* memory);
  stop_matcher(stop_matcher&&) = default;
  stop_matcher& operator=(stop_matcher&&) = default;
  stop_matcher fork(std::pmr::memory_resource* memory) const;

  /// Text that may go out now: certainly before any stop, or ending in the stop with include_stop.
  /// The view holds until the next call. After a stop: nothing more. A stop that is complete in a
  /// piece that may not end the text is passed over; one that began there may end it later.
  std::string_view feed(std::string_view piece, bool may_end = true);
  /// The text is over: what was held back.
  std::string_view finish();

  bool stopped() const { return stopped_; }
  /// Index of the stop string that ended the text.
  uint32_t which() const { return which_; }

 private:
  struct stop {
    uint32_t begin, length;  // in text_ and failure_
    uint32_t matched;        // its longest prefix that the text ends in
  };

  stop_matcher(bool include_stop, std::pmr::memory_resource* memory)
      : stops_(memory), text_(memory), failure_(memory), pending_(memory), include_(include_stop) {}
  void add(std::string_view text);
  void advance(stop& s, char c) const;
  bool take(char c);

  std::pmr::vector<stop> stops_;
  std::pmr::string text_;               // all stop strings, back to back
  std::pmr::vector<uint16_t> failure_;  // of Knuth, Morris and Pratt, for each byte of text_
  std::pmr::string pending_;            // what the last call gave out, then what is held back
  size_t given_ = 0;                    // bytes of pending_ that the last call gave out
  bool include_;
  bool stopped_ = false;
  uint32_t which_ = 0;
};

}  // namespace lethe
