#pragma once

#include <variant>

#include "runtime/client/wallet_content.hpp"

namespace lethe {

// What happens to one token, by its nonce.
struct token_shown {
  hash32 nonce;
  change_choices change;
};
struct token_back {  // it was not shown after all
  hash32 nonce;
};
struct token_gone {
  hash32 nonce;
};
struct token_changed {
  hash32 nonce;
  private_token change;
};
using wallet_change = std::variant<token_shown, token_back, token_gone, token_changed>;

/// False: there is no such token in that state, and nothing changed.
[[nodiscard]] bool apply_change(const wallet_change& change, wallet_content& to);

/// {kind(u8) ‖ nonce(32) ‖ shown: SPKI(342) ‖ challenge digest(32) ‖ nonce(32) ‖ salt(48) ‖
/// factor(256); changed: token(354)}*, kinds 1 to 4 in the order above.
secret_bytes to_bytes(std::span<const wallet_change> changes);
result<std::vector<wallet_change>> changes_from_bytes(bytes_view bytes);

}  // namespace lethe
