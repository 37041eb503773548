#pragma once

#include <string>

#include "runtime/crypto/node_key.hpp"
#include "runtime/log/roster_summary.hpp"

/// Who may be drawn in an epoch (docs/PROTOCOL.md, section 9).
namespace lethe {

inline constexpr std::string_view no_evidence = "none";

struct roster_leaf {
  node_public node;
  hash32 identity{};        // Ed25519, of who runs the node
  std::string model_class;  // lower case, digits, '.', '_', '-', '/'
  uint32_t capacity = 0;
  std::string evidence_kind{no_evidence};  // in the same characters
  std::vector<std::byte> evidence_digest;  // none for "none"
  uint64_t not_before = 0, not_after = 0;  // Unix seconds
  signature identity_signature{};

  bool operator==(const roster_leaf&) const = default;
  /// The fields in that order, each behind its u16 length; of `node`, suite, pk and sigpk.
  std::vector<std::byte> to_bytes() const;
  /// Within bounds, and nothing behind it. The signature may still be anybody's.
  static result<roster_leaf> from_bytes(bytes_view bytes);
  void sign(const signing_key& identity_key);
  bool is_signed() const;

 private:
  std::vector<std::byte> unsigned_bytes() const;
};

/// All nodes of an epoch, in the order of their ids.
struct roster {
  uint32_t epoch = 0;
  std::vector<roster_leaf> leaves;

  bool operator==(const roster&) const = default;
  /// Into the order that the root is made in.
  void sort();
  uint64_t capacity() const;
  hash32 root() const;
  roster_summary summary(uint64_t not_before) const;
  const roster_leaf* find(const hash32& node_key_id) const;

  /// ver(u8) = 1 ‖ epoch(u32) ‖ count(u32) ‖ {u16 length ‖ leaf}×count.
  std::vector<std::byte> to_bytes() const;
  /// Leaves within bounds, in order, no key twice.
  static result<roster> from_bytes(bytes_view bytes);
};

/// A roster as anybody may serve it, against what the log says of its epoch: root, size, capacity,
/// each identity's signature, each leaf valid when the epoch begins.
result<roster> verify_roster(bytes_view bytes, const log_entry& logged);

}  // namespace lethe
