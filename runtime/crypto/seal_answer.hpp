#pragma once

#include <optional>

#include "runtime/crypto/answer_shape.hpp"
#include "runtime/crypto/chunk_frames.hpp"
#include "runtime/crypto/chunk_seal.hpp"
#include "runtime/crypto/receipt.hpp"

namespace lethe {

/// The node's end of an answer: chunks of plaintext, at least one, and then the receipt. With
/// `chunk_bytes` all of them have that size, and their number is a power of two.
class answer_sealer {
 public:
  /// What the node's id takes of the first chunk, and the content's length of each sized one.
  static constexpr size_t first_chunk_bytes_taken = 32, length_bytes = 2;

  answer_sealer(const hpke_suite& suite, const hash32& node_id, bytes_view enc,
                const key_bytes& secret, uint32_t chunk_bytes = 0);

  /// The bytes that open the stream.
  bytes_view first() const noexcept { return nonce_; }
  /// How much of an answer the next chunk holds.
  size_t room() const noexcept;
  /// Whether the next chunk may be the final one.
  bool may_end() const noexcept;
  /// Appends one sealed chunk with its frame. `plain` is the answer, or for the final chunk a
  /// signed receipt that zeroes may follow. The key is gone after the final chunk. A sized chunk
  /// may hold nothing: it is padding.
  result<void> seal(bytes_view plain, bool final, std::vector<std::byte>& out);
  bool ended() const noexcept { return chunks_.ended(); }

 private:
  std::vector<std::byte> nonce_;
  hash32 node_id_;
  uint32_t chunk_bytes_;
  uint64_t sealed_ = 0;  // chunks
  chunk_sealer chunks_;
};

/// A node that may answer, and what opens its answer.
struct answer_candidate {
  node_public node;
  std::vector<std::byte> enc;
  key_bytes secret;
};

/// The client's end: takes the answer in pieces of any size, from whichever candidate it comes.
class answer_opener {
 public:
  /// What the receipt must say, besides what the node adds.
  struct expected {
    hash32 token_hash, request_hash;
    uint32_t epoch;
    uint32_t chunk_bytes = 0;  // of plaintext in every chunk; 0: any
  };
  answer_opener(std::vector<answer_candidate> candidates, const expected& receipt)
      : candidates_(std::move(candidates)), expected_(receipt) {
    check(!candidates_.empty());
  }

  /// Appends what opens to `out`. After an error the answer is lost, and what it started must be
  /// undone: what was appended before is the node's, but may lack its end.
  result<void> push(bytes_view content, std::pmr::string& out);
  /// When the content has ended: opens the final chunk and verifies the receipt in it. Without
  /// one the answer was cut off.
  result<receipt> finish();
  /// Who answers; null until the first chunk was opened.
  const node_public* node() const noexcept { return chunks_ ? &candidates_[who_].node : nullptr; }

 private:
  result<void> open_all(bytes_view content, std::pmr::string& out);
  result<void> open_next(bytes_view chunk, std::pmr::string& out);
  result<void> open_first(bytes_view chunk, std::pmr::string& out);
  result<void> keep_content(size_t at, std::pmr::string& out) const;
  result<void> expect_size(bytes_view chunk) const;
  result<receipt> open_last();
  void drop_secrets();

  std::vector<answer_candidate> candidates_;
  expected expected_;
  std::vector<std::byte> nonce_;
  chunk_frames frames_;
  size_t who_ = 0;
  uint64_t opened_ = 0;  // chunks
  std::optional<chunk_opener> chunks_;
  bool over_ = false;
};

}  // namespace lethe
