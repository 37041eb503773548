#include "actors/cli/waiting_word.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace lethe {

namespace {

constexpr auto long_wait = std::chrono::seconds(5);

}  // namespace

waiting_word::waiting_word(bool explains) {
  if (!explains && !isatty(STDERR_FILENO)) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void waiting_word::begins(std::string what) {
  std::lock_guard lock(mutex_);
  what_ = std::move(what);
  ++waits_;
  changed_.notify_all();
}

void waiting_word::ends() { begins(""); }

void waiting_word::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const uint64_t seen = waits_;
    auto other = [&] { return waits_ != seen; };
    const bool over = what_.empty() ? changed_.wait(lock, stop, other)
                                    : changed_.wait_for(lock, stop, long_wait, other);
    if (over || stop.stop_requested()) continue;
    fmt::print(stderr, "lethe: still waiting for {}\n", what_);
    what_.clear();
  }
}

}  // namespace lethe
