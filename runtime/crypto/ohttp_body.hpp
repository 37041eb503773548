#pragma once

#include "runtime/crypto/chunk_frames.hpp"
#include "runtime/crypto/chunk_seal.hpp"
#include "runtime/crypto/ohttp_head.hpp"
#include "runtime/crypto/ohttp_limits.hpp"

/// What requests and answers of oblivious HTTP have in common: sealed bytes, in one of two forms.
namespace lethe {

/// Seals one message, behind the bytes that go in front of it. After an error it seals nothing
/// more: a stream that lacks a piece must not look like a whole one.
class ohttp_body_sealer {
 public:
  ohttp_body_sealer(ohttp_form form, chunk_keys keys, std::vector<std::byte> front)
      : form_(form), front_(std::move(front)), chunks_(std::move(keys)) {}

  /// Appends the next piece, sealed; the key is gone with the final one. A message of known length
  /// has one piece, the final one. `out` is as it was after an error.
  result<void> seal(bytes_view plain, bool final, std::vector<std::byte>& out);
  bool ended() const noexcept { return chunks_.ended(); }

 private:
  result<void> seal_piece(bytes_view plain, bool final, std::vector<std::byte>& out);

  ohttp_form form_;
  std::vector<std::byte> front_;  // until the first piece takes it along
  chunk_sealer chunks_;
};

/// Why a message is refused.
enum class ohttp_refusal : uint8_t {
  none,
  key,        // unknown, expired, or of another suite: ohttp_names::key_problem
  format,     // not framed as such a message is, or cut off
  sealed,     // it does not open: changed, or sealed for another
  too_large,  // above a limit, or above what its memory has room for
  replay,     // its seal was opened before
  full,       // the key's memory of seals has no room; rotate the keys
};

/// Opens one message that comes in pieces of any size. To be dropped after an error.
class ohttp_body_opener {
 public:
  ohttp_body_opener(ohttp_form form, chunk_keys keys) : form_(form), chunks_(std::move(keys)) {}

  /// Appends what opens; of a message of known length nothing before finish().
  result<void> push(bytes_view content, std::pmr::string& out);
  /// When the content has ended.
  result<void> finish(std::pmr::string& out);
  /// Something was opened, and thus sealed by who has the key.
  bool opened() const noexcept { return opened_; }
  ohttp_refusal refusal() const noexcept { return refusal_; }

 private:
  result<void> open(bytes_view sealed, bool final, std::pmr::string& out);
  error refused(ohttp_refusal kind, error why);

  ohttp_form form_;
  chunk_frames frames_;
  std::vector<std::byte> held_;  // a message of known length, sealed
  chunk_opener chunks_;
  bool opened_ = false;
  ohttp_refusal refusal_ = ohttp_refusal::none;
};

/// Wipes and drops what was appended since `out` had `bytes`.
void cut_back(std::pmr::string& out, size_t bytes) noexcept;

}  // namespace lethe
