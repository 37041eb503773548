#pragma once

#include <filesystem>

#include "runtime/base/locked_file.hpp"
#include "runtime/log/log_entry.hpp"
#include "runtime/log/signed_head.hpp"
#include "runtime/log/tiles.hpp"

namespace lethe {

/// An append-only log in a folder, with one writer:
///   entries     every entry behind its u16 length; what follows the head's size is no part of it
///   head        the newest head, signed by the log alone: once signed, never less
///   checkpoint  what readers get: a head with the witnesses' signatures
/// Tiles are made from the entries when they are asked for, so they can't disagree with them.
/// After a crash at any point the log is as it was before an append, or as after it.
class log_file {
 public:
  /// A new log, named by its key. Refuses a folder that holds one: its history must go on.
  static result<log_file> create(const std::filesystem::path& folder, note_signer signer);
  static result<log_file> open(const std::filesystem::path& folder, note_signer signer);
  log_file(log_file&&) noexcept = default;

  /// All of them or none, on the disk before the new head is given. Each continues its kind's
  /// epochs by one. After a failure of the disk the log must be opened again.
  result<signed_head> append(std::span<const log_entry> entries);
  /// What readers are to get: one of this log's heads, no older than what they got before, with
  /// the signatures that witnesses gave for it.
  result<void> publish(const signed_head& cosigned);

  const signed_head& head() const noexcept { return head_; }
  const std::optional<signed_head>& published() const noexcept { return published_; }
  std::optional<uint32_t> last_epoch(log_kind kind) const { return epochs_.last(kind); }
  /// For a witness that saw that size last; it is at most the head's.
  merkle_proof consistency(uint64_t old_size) const;
  result<log_entry> entry(uint64_t index) const;
  /// "checkpoint", "tile/...": what a server answers. Says no to all other paths.
  result<std::vector<std::byte>> fetch(std::string_view path) const;

 private:
  log_file(std::filesystem::path folder, note_signer signer, locked_file entries)
      : folder_(std::move(folder)), signer_(std::move(signer)), entries_(std::move(entries)) {}
  result<void> read_entries();
  result<void> read_heads();
  result<void> check_ours(const signed_head& note, const char* file) const;
  result<void> check_next(std::span<const log_entry> entries) const;
  void take(const log_entry& entry, bytes_view bytes);
  result<void> write_tail(bytes_view tail);
  result<void> set_head(signed_head next);
  result<std::vector<std::byte>> bundle(uint64_t first, uint32_t count) const;
  uint64_t end_bytes() const { return ends_.empty() ? 0 : ends_.back(); }

  std::filesystem::path folder_;
  note_signer signer_;
  locked_file entries_;         // the writer's lock
  std::vector<uint64_t> ends_;  // of each entry in the file
  merkle_tree tree_;
  epoch_index epochs_;
  signed_head head_;
  std::optional<signed_head> published_;
  bool broken_ = false;
};

}  // namespace lethe
