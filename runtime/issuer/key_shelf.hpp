#pragma once

#include <filesystem>
#include <vector>

#include "runtime/token/token_issuer.hpp"

namespace lethe {

/// An issuer's keys as files of a folder that this process has locked: one for each token epoch.
class key_shelf {
 public:
  key_shelf(std::filesystem::path folder, uint32_t epoch_s);

  uint32_t epoch_at(uint64_t now_s) const { return uint32_t(now_s / epoch_s_); }
  uint64_t begin_of(uint32_t epoch) const { return uint64_t{epoch} * epoch_s_; }

  /// The keys that live in an epoch: its own and the next one's, which are made if they are not
  /// there, and the one before, if it is there.
  result<token_issuer> live_in(uint32_t epoch) const;
  /// Epochs before that one whose keys are still there, the oldest first.
  result<std::vector<uint32_t>> before(uint32_t epoch) const;
  result<hash32> id_of(uint32_t epoch) const;
  /// Overwritten and removed.
  result<void> destroy(uint32_t epoch) const;
  /// Ends what a process that died had begun to destroy.
  result<void> sweep() const;

 private:
  struct dated_key {
    uint32_t epoch;
    issuer_key key;
  };
  std::filesystem::path path_of(uint32_t epoch) const;
  result<issuer_key> keep(uint32_t epoch, const std::vector<dated_key>& others) const;
  std::filesystem::path folder_;
  uint32_t epoch_s_;
};

}  // namespace lethe
