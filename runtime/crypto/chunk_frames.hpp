#pragma once

#include <vector>

#include "runtime/base/limits.hpp"
#include "runtime/base/result.hpp"
#include "runtime/crypto/aead.hpp"

namespace lethe {

inline constexpr size_t chunk_sealed_bytes_max = limits::chunk_plain_bytes_max + aead_tag_bytes;

/// Cuts a stream of sealed chunks (docs/PROTOCOL.md, section 5) that arrives in pieces of any
/// size. Holds at most one chunk, and nothing that was opened.
class chunk_frames {
 public:
  /// The next chunk that is whole and not the final one, cut off the front of `content`; empty
  /// when `content` is used up first. Valid until the next call, while `content` is.
  result<bytes_view> next(bytes_view& content);
  /// The final chunk, when the content has ended.
  result<bytes_view> finish();

 private:
  result<bytes_view> next_in(bytes_view& content);
  bool take_until(size_t bytes, bytes_view& content);

  std::vector<std::byte> held_;  // the beginning of a frame, or of the final chunk
  bool handed_out_ = false;      // `held_` is what the last call returned
  bool final_ = false;
};

}  // namespace lethe
