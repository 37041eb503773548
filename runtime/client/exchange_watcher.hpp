#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "runtime/http/http_client.hpp"

namespace lethe {

/// What the network's thread tells of one call, for a thread that waits for it.
class exchange_watcher final : public http_call_watcher {
 public:
  /// A call of which nothing more came for so long is over; nothing: the network's limits are all.
  explicit exchange_watcher(std::optional<std::chrono::milliseconds> wait_max = {})
      : wait_max_(wait_max) {}

  void began(uint64_t, const http_reply& head) override {
    note([&] { head_ = head; });
  }
  void came(uint64_t, std::string_view piece) override {
    note([&] { came_.append(piece); });
  }
  void drained(uint64_t, size_t) override {
    note([&] { connected_ = true; });
  }
  void ended(uint64_t, const result<void>& how) override {
    note([&] {
      if (!how_) how_ = how;
    });
  }
  void stop() {
    note([&] { stopped_ = true; });
  }

  /// Until something of the call is with the network (true), or it is over.
  bool wait_connected() {
    return wait([&] { return connected_ || head_; }), connected_ || head_;
  }
  /// Until the answer begins; null: it never does.
  const http_reply* wait_head() {
    return wait([&] { return head_.has_value(); }), head_ ? &*head_ : nullptr;
  }
  /// The next of the answer; empty at its end.
  std::string wait_piece() {
    wait([&] { return !came_.empty(); });
    std::lock_guard lock(mutex_);
    return std::exchange(came_, {});
  }
  /// Whether it is over since nothing came for so long.
  bool hung() {
    std::lock_guard lock(mutex_);
    return hung_;
  }
  /// Once nothing more comes. Only then is `how` known; nothing: it was stopped.
  std::optional<result<void>> how() {
    std::lock_guard lock(mutex_);
    return stopped_ ? std::nullopt : how_;
  }

 private:
  template <class F>
  void note(F f) {
    {
      std::lock_guard lock(mutex_);
      f();
    }
    changed_.notify_all();
  }
  template <class Holds>
  void wait(Holds holds) {
    std::unique_lock lock(mutex_);
    auto over = [&] { return holds() || how_ || stopped_; };
    if (!wait_max_)
      changed_.wait(lock, over);
    else if (!changed_.wait_for(lock, *wait_max_, over)) {
      hung_ = true;
      how_ = fail("nothing came for {} s; it or what it passes to may hang",
                  std::chrono::duration<double>(*wait_max_).count());
    }
  }

  const std::optional<std::chrono::milliseconds> wait_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<http_reply> head_;
  std::string came_;
  bool connected_ = false, stopped_ = false, hung_ = false;
  std::optional<result<void>> how_;
};

}  // namespace lethe
