#pragma once

#include <map>
#include <string>

namespace lethe::testing {

/// What a library may have begun in this process and not ended.
struct process_state {
  std::map<int, std::string> threads;     // but CUDA's own, by number, with their names
  std::map<long, std::string> listeners;  // TCP sockets that wait for calls, where they do

  static process_state now();
  /// What is here and was not there before.
  process_state beyond(const process_state& before) const;
  bool empty() const { return threads.empty() && listeners.empty(); }
  std::string text() const;
};

}  // namespace lethe::testing
