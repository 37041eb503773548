#pragma once

#include <vector>

#include "runtime/base/secret_bytes.hpp"
#include "runtime/token/token_client.hpp"

namespace lethe {

/// What one request for change was made of, so that it can be made again after a crash. Used for
/// one token only.
struct change_choices {
  token_spki key{};  // that signs it
  hash32 challenge_digest{};
  hash32 nonce{};  // of the token to come
  std::array<std::byte, pss_salt_bytes> salt{};
  token_signature factor{};

  change_choices() = default;
  change_choices(const change_choices&) = default;
  change_choices& operator=(const change_choices&) = default;
  ~change_choices() { wipe(this, sizeof *this); }
  bool operator==(const change_choices&) const = default;

  static change_choices draw(const token_key& key, const hash32& challenge_digest);
  result<pending_token> pending() const;
};

/// A token that was shown, or is about to be, with the change that may come of it.
struct wallet_spend {
  private_token token;
  change_choices change;
  bool operator==(const wallet_spend&) const = default;
};

/// All that a wallet holds.
struct wallet_content {
  uint64_t generation = 0;  // one more with each change
  std::vector<private_token> tokens;
  std::vector<wallet_spend> spends;

  bool operator==(const wallet_content&) const = default;
  /// ver(u8) = 1 ‖ generation(u64) ‖ u32 ‖ token(354)* ‖ u32 ‖ {token(354) ‖ SPKI(342) ‖ challenge
  /// digest(32) ‖ nonce(32) ‖ salt(48) ‖ factor(256)}*.
  secret_bytes to_bytes() const;
  static result<wallet_content> from_bytes(bytes_view bytes);

  /// "lethe wallet 2\n" ‖ nonce(12) ‖ AES-256-GCM of that, with those first bytes as aad.
  std::vector<std::byte> seal(bytes_view key) const;
  static result<wallet_content> open(bytes_view sealed, bytes_view key);
};

}  // namespace lethe
