#pragma once

#include <string>

#include "runtime/client/wallet_change.hpp"
#include "runtime/client/wallet_disk.hpp"
#include "runtime/crypto/key_bytes.hpp"

namespace lethe {

/// A wallet's content on a disk, kept by commits: each is numbered, takes any number of changes,
/// and is one write and one sync of the journal; when that is full, the whole file instead.
///
/// The journal is pages of 4 KiB. A record begins a page: base(u64) ‖ number(u64) ‖ bytes(u32) ‖
/// nonce(12) ‖ AES-256-GCM of that many bytes of changes, with "lethe wallet journal 1\n" and the
/// 32 bytes before as aad. `base` is the generation of the file that it adds to. Pages 0 and 1 have
/// records without changes and announce a file, in turns, before it is written; page 2 says that it
/// has come, before anyone is told of what is in it: so a file or a journal that is older than the
/// other is found out. The others have the commits since the file, in order. After the last stands
/// a record without changes that confirms it, not synced, until the next commit takes its place: so
/// only what was never confirmed can be missing.
class wallet_journal {
 public:
  /// The disk outlives it. `name` is the file's, for errors.
  wallet_journal(wallet_disk& disk, bytes_view key, std::string name)
      : disk_(disk), key_(key), name_(std::move(name)) {}

  /// What is there, empty if nothing is; all of it on the disk, and in the file alone, from here
  /// on. Called once, and first.
  result<wallet_content> read();

  /// Whether there are commits since the file.
  bool used() const;
  bool fits(size_t changes_bytes) const;
  /// The commit of that number, which is one more than the last; on the disk when this returns.
  /// After a failure nothing else is asked.
  result<void> append(uint64_t number, bytes_view changes);
  /// The same, of the whole content; its generation is its number.
  result<void> replace(const wallet_content& content);

 private:
  struct piece;
  struct files_said {
    uint64_t announced = 0;
    size_t page = 0;  // that announces it
    std::optional<uint64_t> arrived;
  };
  result<files_said> files_in(const std::vector<piece>& pieces) const;
  std::vector<piece> pieces_of(bytes_view journal) const;
  result<wallet_content> begin(bytes_view journal);
  result<bool> follow(const std::vector<piece>& pieces, wallet_content& content);
  result<void> put(size_t page, uint64_t base, uint64_t number, bytes_view changes);
  error damaged(size_t page) const;
  error older(const char* what, const std::string& name) const;

  wallet_disk& disk_;
  key_bytes key_;
  std::string name_;
  uint64_t base_ = 0;
  size_t announced_ = 1;  // page of the last announcement
  size_t page_ = 3;       // of the next commit
};

}  // namespace lethe
