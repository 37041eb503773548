#include "runtime/telemetry/telemetry_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

namespace lethe {

namespace {

/// A log that cannot be written, on a full disk say, is no reason to serve nobody.
void put(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace

void telemetry_log::say(const telemetry_event& event) {
  if (std::exchange(progress_, false)) put("\r\x1b[K");
  double at = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  put(fmt::format("{:8.2f} s  {}\n", at, rendered(event, names_)));
}

void telemetry_log::show_progress(const telemetry_event& event) {
  if (!terminal_) return;
  put(fmt::format("\r\x1b[K            {}", rendered(event, names_)));
  progress_ = true;
}

void say_once(const telemetry_event& event) {
  put(fmt::format("lethe: {}\n", rendered(event, {})));
}

void end_quietly_when_uncaught() {
  std::set_terminate([] {
    static constexpr char text[] = "lethe: ended by an exception that nobody caught\n";
    (void)!::write(STDERR_FILENO, text, sizeof text - 1);
    std::abort();
  });
}

}  // namespace lethe
