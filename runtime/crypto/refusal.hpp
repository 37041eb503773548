#pragma once

#include "runtime/crypto/node_key.hpp"

namespace lethe {

/// Why a node does not take a request. Numbers are bytes on the wire.
enum class refusal_reason : uint8_t {
  other_epoch = 1,  // beyond grace
  not_opened = 2,   // no seal for this node, or not whole
  seen = 3,         // the seal, or the token
  bad_token = 4,
  full = 5,
  leaving = 6,
  failed = 7,
};
inline constexpr uint8_t refusal_reasons = 7;

/// What a node signs when it refuses a request or fails at it, so that nobody can do it in its
/// name.
struct node_refusal {
  hash32 binding{};  // A of the sealed request (docs/PROTOCOL.md, section 8)
  uint32_t epoch = 0;
  refusal_reason reason = refusal_reason::failed;

  bool operator==(const node_refusal&) const = default;
};

inline constexpr size_t refusal_bytes = 32 + 4 + 1 + signature_bytes;
using signed_refusal = std::array<std::byte, refusal_bytes>;

/// The fields in order, big-endian, and the signature over "lethe refusal" and them.
signed_refusal sign_refusal(const node_key& key, const node_refusal& r);
/// Of the request with that binding, and no other.
result<node_refusal> verify_refusal(bytes_view bytes, const hash32& sigpk, const hash32& binding);

}  // namespace lethe
