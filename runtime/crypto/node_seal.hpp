#pragma once

#include "runtime/crypto/chunk_seal.hpp"
#include "runtime/crypto/seal_answer.hpp"

/// A request sealed to the nodes that a client drew, so that nobody between them can read it or
/// move it to another token, epoch or node (docs/PROTOCOL.md, section 8).
namespace lethe {

/// What a client sends, and what opens the answer to it.
struct sealed_request {
  std::vector<std::byte> message;
  answer_opener answer;
};

/// `plain` fits limits::sealed_plain_bytes_max; the nodes, one to three, have one suite. The answer
/// must have chunks of that size, if it is given.
result<sealed_request> seal_request(bytes_view plain, std::span<const node_public> nodes,
                                    uint32_t epoch, const hash32& token_hash,
                                    uint32_t chunk_bytes = 0);

/// What a node has of a request that opened.
struct opened_request {
  std::pmr::string plain;
  answer_sealer answer;
  hash32 request_hash;         // for the receipt
  uint32_t epoch;              // as the client sealed it, for the receipt
  std::vector<std::byte> enc;  // for seen_seals, before anything is done with `plain`
};

/// A seal of this epoch or the one before, for this node, bound to this token, and whole. The
/// plaintext lies in `memory`; what a refused request left there is wiped. The answer gets chunks
/// of that size, if it is given.
result<opened_request> open_request(const node_key& key, bytes_view sealed, uint32_t epoch_now,
                                    const hash32& token_hash, std::pmr::memory_resource* memory,
                                    uint32_t chunk_bytes = 0);

}  // namespace lethe
