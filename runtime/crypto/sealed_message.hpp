#pragma once

#include "runtime/base/limits.hpp"
#include "runtime/crypto/node_key.hpp"

/// The bytes of docs/PROTOCOL.md, section 8, as both ends see them.
namespace lethe {

inline constexpr uint8_t seal_version = 1;

/// One candidate's part of a sealed request.
struct seal_entry {
  hash32 node_id{};
  bytes_view enc;
  bytes_view wrapped;  // cek for this node
};

/// A sealed request taken apart; views of the message.
struct sealed_message {
  hpke_suite suite;
  uint32_t epoch = 0;
  std::vector<seal_entry> entries;
  bytes_view chunks;

  static result<sealed_message> parse(bytes_view bytes);
  /// Everything before the chunks.
  std::vector<std::byte> head() const;
  /// A: what binds candidates, epoch and token together.
  hash32 binding(const hash32& token_hash) const;
  std::vector<std::byte> info(const hash32& node_id) const;
};

/// The aad under which cek is wrapped: a second candidate knows cek, but can't change the body.
inline hash32 wrap_aad(const hash32& binding, bytes_view chunks) {
  return sha256({binding, sha256({chunks})});
}

inline constexpr std::string_view answer_label = "lethe sealed response";

}  // namespace lethe
