#pragma once

#include <chrono>

#include "runtime/telemetry/telemetry.hpp"

namespace lethe {

/// A serving process's lines on standard error: each an event of the schema, in its words.
class telemetry_log {
 public:
  /// On a terminal progress is shown in place.
  explicit telemetry_log(telemetry_names names, bool terminal = false)
      : names_(std::move(names)), terminal_(terminal), begun_(std::chrono::steady_clock::now()) {}

  void say(const telemetry_event& event);
  /// Overwritten by the next line; nothing where it is no terminal.
  void show_progress(const telemetry_event& event);
  const telemetry_names& names() const { return names_; }

 private:
  telemetry_names names_;
  bool terminal_, progress_ = false;
  std::chrono::steady_clock::time_point begun_;
};

/// For who has no log: one line.
void say_once(const telemetry_event& event);

/// From here on an exception that nobody catches ends the process with a fixed line: the C++
/// library's own handler prints what the exception says, which may quote anything.
void end_quietly_when_uncaught();

}  // namespace lethe
