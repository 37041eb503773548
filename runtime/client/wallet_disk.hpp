#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// Where a wallet lies: a small file, and a journal whose pages are written in place. One process
/// has it.
class wallet_disk {
 public:
  virtual ~wallet_disk() = default;
  /// As it is on the disk; nothing: it is not there.
  virtual result<std::optional<std::vector<std::byte>>> read_file() = 0;
  /// As a whole; on the disk when this returns.
  virtual result<void> replace_file(bytes_view bytes) = 0;

  /// No bytes: it is new.
  virtual result<std::vector<std::byte>> read_journal() = 0;
  /// On the disk once it was synced; until then all, some or none of it may be.
  virtual result<void> write_journal(uint64_t at, bytes_view bytes) = 0;
  virtual result<void> sync_journal() = 0;
};

/// FILE and FILE.journal, which is locked while this lives.
result<std::unique_ptr<wallet_disk>> open_wallet_disk(const std::filesystem::path& file);
/// The same files, whoever has them: what is written to this is not kept.
std::unique_ptr<wallet_disk> view_wallet_disk(const std::filesystem::path& file);

}  // namespace lethe
