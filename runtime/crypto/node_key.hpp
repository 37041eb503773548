#pragma once

#include "runtime/crypto/ed25519.hpp"
#include "runtime/crypto/hpke.hpp"

namespace lethe {

/// What a roster says of a node's key (docs/PROTOCOL.md, section 9).
struct node_public {
  hpke_suite suite;
  std::vector<std::byte> pk;  // HPKE
  hash32 sigpk{};             // Ed25519
  hash32 id{};                // node_key_id, of the three above

  bool operator==(const node_public&) const = default;
  /// suite ‖ pk ‖ sigpk. The id follows from them.
  std::vector<std::byte> to_bytes() const;
  static result<node_public> from_bytes(bytes_view bytes);
};

/// SHA-256("lethe node key" ‖ suite ‖ pk ‖ sigpk).
hash32 node_key_id(const hpke_suite& suite, bytes_view pk, const hash32& sigpk);

/// A node's key of one epoch: never on a disk, cleared with the object.
class node_key {
 public:
  static result<node_key> make(const hpke_suite& suite = {});
  static result<node_key> from(const hpke_suite& suite, hpke_key seal, signing_key sign);

  const node_public& published() const noexcept { return public_; }
  const hpke_key& seal_key() const noexcept { return seal_; }
  signature sign(bytes_view message) const { return sign_.sign(message); }

 private:
  node_key(hpke_key seal, signing_key sign, node_public published)
      : seal_(std::move(seal)), sign_(std::move(sign)), public_(std::move(published)) {}
  hpke_key seal_;
  signing_key sign_;
  node_public public_;
};

}  // namespace lethe
