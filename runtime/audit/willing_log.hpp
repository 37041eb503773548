#pragma once

#include <map>

#include "runtime/log/log_file.hpp"
#include "runtime/log/roster.hpp"

namespace lethe::audit {

/// A real log with its witness, in a folder, whose operator signs whatever he is told to: two with
/// the same keys can tell two stories.
class willing_log {
 public:
  struct keys {
    std::array<std::byte, 32> log, witness;
    static keys make();
    note_trust trust() const;
  };
  static result<std::unique_ptr<willing_log>> create(const std::filesystem::path& folder,
                                                     const keys& with);

  /// The next of its kind; the head is cosigned and published.
  result<void> add(log_kind kind, bytes_view payload, uint64_t now_s);
  /// As the next epoch's.
  result<void> add(roster nodes, uint64_t now_s);
  /// The witness's word again.
  result<void> cosign(uint64_t now_s);

  const roster& nodes() const { return rosters_.rbegin()->second; }
  /// "checkpoint", "tile/...", "roster/EPOCH".
  result<std::vector<std::byte>> look(std::string_view path) const;

 private:
  willing_log(log_file log, note_signer witness)
      : log_(std::move(log)), witness_(std::move(witness)) {}
  uint32_t next_epoch(log_kind kind) const { return log_.last_epoch(kind).value_or(0) + 1; }
  result<void> append(const log_entry& entry, uint64_t now_s);

  log_file log_;
  note_signer witness_;
  std::map<uint32_t, roster> rosters_;
};

}  // namespace lethe::audit
