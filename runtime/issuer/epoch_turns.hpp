#pragma once

#include "runtime/issuer/key_shelf.hpp"
#include "runtime/issuer/live_keys.hpp"
#include "runtime/store/account_store.hpp"
#include "runtime/store/change_store.hpp"

namespace lethe {

/// Takes an issuer from one token epoch to the next. Stores and keys outlive it.
class epoch_turns {
 public:
  epoch_turns(std::filesystem::path folder, uint32_t epoch_s, account_store& accounts,
              change_store& changes);

  /// Nothing unless the epoch is another one or the last turn failed, which is tried again: the
  /// next key is there, and what is neither current nor previous is destroyed with all that was
  /// kept about it. By one thread.
  result<void> turn(uint64_t now_s);

  const key_shelf& shelf() const { return shelf_; }
  const live_keys& keys() const { return keys_; }
  /// What is published, as JSON.
  std::shared_ptr<const std::string> directory() const;

 private:
  result<void> show(uint32_t epoch, uint64_t now_s);
  /// Rounded down, so that no account can be told by it.
  result<uint64_t> buyers(uint32_t epoch);
  result<void> retire(uint32_t epoch);
  /// A line "EPOCH COUNT" of the file `buyers`.
  result<void> log_buyers(uint32_t epoch);

  const std::filesystem::path folder_;
  key_shelf shelf_;
  account_store& accounts_;
  change_store& changes_;
  live_keys keys_;
  mutable std::mutex mutex_;
  std::shared_ptr<const std::string> directory_;
  std::optional<uint32_t> turned_to_;
};

}  // namespace lethe
