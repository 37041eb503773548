#pragma once

#include "runtime/crypto/hpke.hpp"

/// What both ends of oblivious HTTP know of a request (docs/PROTOCOL.md, sections 4 and 5).
namespace lethe {

/// A message of known length (RFC 9458) is opened as a whole, a chunked one piece by piece. The
/// answer always has the form of its request.
enum class ohttp_form : uint8_t { whole, chunked };

/// The first bytes of a request: whose key, and which suite.
struct ohttp_head {
  static constexpr size_t wire_bytes = 1 + hpke_suite::wire_bytes;

  uint8_t key_id = 0;
  hpke_suite suite;

  std::array<std::byte, wire_bytes> bytes() const noexcept;
  static ohttp_head from_bytes(std::span<const std::byte, wire_bytes> bytes) noexcept;
  /// What HPKE binds the seal to.
  std::vector<std::byte> info(ohttp_form form) const;
};

/// What an answer is sealed and opened with; it is wiped as soon as the answer's key is made of it.
struct ohttp_exchange {
  ohttp_form form;
  hpke_suite suite;
  std::vector<std::byte> enc;
  key_bytes secret;

  static ohttp_exchange of(ohttp_form form, const hpke_suite& suite, bytes_view enc,
                           const hpke_keys& keys);
  /// What makes the answer's key out of the secret.
  std::vector<std::byte> salt(bytes_view nonce) const;
};

}  // namespace lethe
