#pragma once

#include <mutex>

#include "runtime/store/spend_ledger.hpp"

namespace lethe {

enum class change_record : uint8_t {
  fresh,       // now recorded
  same_again,  // recorded before, with this digest: the same answer is signed again
  refused,     // recorded with another digest
};

/// The issuer's: which tokens were changed, and for which blinded request (docs/PROTOCOL.md,
/// section 7). Any thread may ask; each waits for the disk.
class change_store {
 public:
  static result<std::unique_ptr<change_store>> open(const store_place& place);

  /// Durable when it returns: only then is the change signed.
  result<change_record> record(const token_id& token, const hash32& change_digest);
  /// Removes all of a key that is no longer changed, in slices that others needn't wait for.
  result<void> drop_key(const hash32& key_id);
  result<uint64_t> count(const hash32& key_id);

 private:
  explicit change_store(sqlite_file file) : file_(std::move(file)) {}
  result<change_record> compare(const token_id& token, const hash32& change_digest);
  result<bool> drop_some(const hash32& key_id);
  std::mutex mutex_;
  sqlite_file file_;
};

}  // namespace lethe
