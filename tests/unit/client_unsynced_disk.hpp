#pragma once

#include <functional>
#include <mutex>
#include <random>

#include "runtime/client/wallet_disk.hpp"

namespace lethe::test {

/// A wallet's disk in memory, that outlives those who write to it. Processes end on it by count, so
/// that a run does not depend on time: either killed in the middle of a write, of which a part was
/// made, or by a power loss, which leaves of each sector that was written since the last sync
/// either what it was or what it became, by chance.
class unsynced_disk {
 public:
  enum class ending { kill, power_loss };

  /// What a process has of it.
  std::unique_ptr<wallet_disk> handle() { return std::make_unique<view>(*this); }

  void end_after(uint64_t steps, ending how, uint32_t seed) {
    left_ = steps;
    how_ = how;
    random_.seed(seed);
  }
  bool ended() const { return left_ == 0; }
  /// The next process finds what there is.
  void restart() {
    if (how_ == ending::power_loss) lose();
    left_ = forever;
  }
  uint64_t syncs() const {
    std::lock_guard lock(mutex_);
    return syncs_;
  }
  uint64_t replaced() const {
    std::lock_guard lock(mutex_);
    return replaced_;
  }

  std::optional<std::vector<std::byte>> file;
  std::vector<std::byte> journal;  // as processes see it
  std::function<void()> before_sync;
  bool skips_syncs = false;  // says that it did
  bool fails = false;        // to sync

 private:
  static constexpr uint64_t forever = ~uint64_t{0};
  static constexpr size_t sector = 512;
  using bytes = std::vector<std::byte>;

  class view final : public wallet_disk {
   public:
    explicit view(unsynced_disk& on) : on_(on) {}
    result<std::optional<bytes>> read_file() override { return on_.file; }
    result<bytes> read_journal() override { return on_.journal; }
    result<void> replace_file(bytes_view b) override { return on_.replace(b); }
    result<void> write_journal(uint64_t at, bytes_view b) override { return on_.write(at, b); }
    result<void> sync_journal() override { return on_.sync(); }

   private:
    unsynced_disk& on_;
  };

  /// Whether this step is made; false: the process ends in it.
  bool steps() {
    if (left_ != forever && left_ > 0) --left_;
    return left_ > 0;
  }
  static error over() { return fail("the process has ended"); }

  result<void> replace(bytes_view b) {
    std::lock_guard lock(mutex_);
    if (left_ == 0) return over();
    const bool whole = steps();
    if (whole || random_() % 2) file = bytes(b.begin(), b.end());
    if (!whole) return over();
    ++replaced_;
    return {};
  }
  result<void> write(uint64_t at, bytes_view b) {
    std::lock_guard lock(mutex_);
    if (left_ == 0) return over();
    const bool whole = steps();
    if (!whole) b = b.first(random_() % (b.size() + 1));
    if (journal.size() < at + b.size()) journal.resize(at + b.size());
    std::ranges::copy(b, journal.begin() + long(at));
    return whole ? result<void>() : over();
  }
  result<void> sync() {
    if (before_sync) before_sync();
    std::lock_guard lock(mutex_);
    if (fails) return fail("the disk cannot sync");
    if (left_ == 0 || !steps()) return over();
    ++syncs_;
    if (!skips_syncs) kept_journal_ = journal;
    return {};
  }
  void lose() {
    if (journal.size() != kept_journal_.size() && random_() % 2)
      kept_journal_.resize(journal.size());
    journal.resize(kept_journal_.size());
    for (size_t at = 0; at < journal.size(); at += sector) {
      if (random_() % 2) continue;
      const size_t size = std::min(sector, journal.size() - at);
      std::copy_n(kept_journal_.begin() + long(at), size, journal.begin() + long(at));
    }
    kept_journal_ = journal;
  }

  mutable std::mutex mutex_;
  bytes kept_journal_;  // as it is on the disk
  uint64_t left_ = forever, syncs_ = 0, replaced_ = 0;
  ending how_ = ending::kill;
  std::mt19937 random_;
};

}  // namespace lethe::test
