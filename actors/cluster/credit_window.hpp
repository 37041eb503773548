#pragma once

#include <algorithm>
#include <deque>
#include <utility>

#include "runtime/base/limits.hpp"

namespace lethe {

/// Pieces of an answer that are on their way to a client, and those that it has taken and for which
/// the request hasn't got credit yet.
class credit_window {
 public:
  static constexpr uint32_t batch = limits::answer_window / 4;

  /// A piece of the answer became so many bytes for the client.
  void sent(size_t bytes) {
    waiting_.push_back(bytes);
    pass_empty();
  }
  /// The network took so many.
  void drained(size_t bytes) {
    while (bytes > 0 && !waiting_.empty()) {
      size_t part = std::min(bytes, waiting_.front());
      waiting_.front() -= part;
      bytes -= part;
      pass_empty();
    }
  }
  /// What is due now: a batch, or nothing yet.
  uint32_t due() { return taken_ < batch ? 0 : std::exchange(taken_, 0); }

 private:
  void pass_empty() {
    for (; !waiting_.empty() && waiting_.front() == 0; waiting_.pop_front()) ++taken_;
  }

  std::deque<size_t> waiting_;
  uint32_t taken_ = 0;
};

}  // namespace lethe
