#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace lethe {

/// Says on standard error, once for each wait, what a command waits for when that takes long.
class waiting_word {
 public:
  /// To people: where standard error is a terminal, or they asked for explanations.
  explicit waiting_word(bool explains);
  void begins(std::string what);
  void ends();

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t waits_ = 0;
  std::string what_;  // empty: nothing is waited for
  std::jthread thread_;
};

}  // namespace lethe
