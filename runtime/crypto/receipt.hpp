#pragma once

#include "runtime/crypto/node_key.hpp"

namespace lethe {

/// What a node says when it has forgotten a request: the final chunk of an answer.
struct receipt {
  hash32 token_hash{};
  hash32 request_hash{};  // SHA-256 of the whole sealed message
  hash32 release{};       // digest of what the node runs
  uint32_t epoch = 0;
  uint32_t arenas = 0;
  uint64_t bytes_wiped = 0;

  bool operator==(const receipt&) const = default;
};

inline constexpr size_t receipt_bytes = 3 * 32 + 4 + 4 + 8 + signature_bytes;
using signed_receipt = std::array<std::byte, receipt_bytes>;

/// The fields in order, big-endian, and the signature over "lethe receipt" and them.
signed_receipt sign_receipt(const node_key& key, const receipt& r);
/// Zeroes may follow, which give the final chunk the size of the others.
result<receipt> verify_receipt(bytes_view bytes, const hash32& sigpk);

}  // namespace lethe
