#pragma once

#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/limits.hpp"
#include "runtime/base/result.hpp"
#include "runtime/crypto/aead.hpp"

/// The chunks of docs/PROTOCOL.md, section 5: each sealed under its number, the last one marked.
namespace lethe {

/// Key and base nonce from a secret, by HKDF under a public salt.
struct chunk_keys {
  aead cipher;
  nonce_counter nonces;

  static chunk_keys sealing(aead_id id, bytes_view salt, bytes_view secret);
  static chunk_keys opening(aead_id id, bytes_view salt, bytes_view secret);
};

class chunk_sealer {
 public:
  explicit chunk_sealer(chunk_keys keys) : keys_(std::move(keys)) {}
  chunk_sealer(aead_id id, bytes_view salt, bytes_view secret)
      : keys_(chunk_keys::sealing(id, salt, secret)) {}

  /// Appends one chunk, `plain` between `prefix` and `suffix`, with its frame. The key is gone with
  /// the final one. An empty chunk that is not final, one above the limit, and any after the final
  /// one are refused.
  result<void> seal(bytes_view plain, bool final, std::vector<std::byte>& out,
                    bytes_view prefix = {}, bytes_view suffix = {});
  /// Appends a message that is no stream: sealed at once, of any length, unframed. The key is gone.
  result<void> seal_whole(bytes_view plain, std::vector<std::byte>& out);
  /// The key is gone from here on.
  void close() noexcept { keys_.reset(); }
  bool ended() const noexcept { return !keys_; }

 private:
  std::optional<chunk_keys> keys_;
};

/// Opens what chunk_frames cuts. After an error it opens nothing more.
class chunk_opener {
 public:
  explicit chunk_opener(chunk_keys keys) : keys_(std::move(keys)) {}
  chunk_opener(aead_id id, bytes_view salt, bytes_view secret)
      : keys_(chunk_keys::opening(id, salt, secret)) {}

  /// Appends the plaintext; `out` is as it was if the chunk does not open.
  result<void> open(bytes_view sealed, bool final, std::pmr::string& out);
  /// The same for what seal_whole wrote: at least aead_tag_bytes.
  result<void> open_whole(bytes_view sealed, std::pmr::string& out);
  /// The key is gone from here on, as it is after the final chunk and after an error.
  void close() noexcept { keys_.reset(); }
  bool ended() const noexcept { return !keys_; }

 private:
  result<void> open_as(bytes_view aad, bytes_view sealed, bool last, std::pmr::string& out);
  std::optional<chunk_keys> keys_;
};

/// Room for that many bytes, and for growth if it has to move; false where its memory is exhausted.
bool make_room(std::pmr::string& text, size_t bytes);

/// What the chunks of a whole stream hold in the clear, from their frames alone. Refuses a stream
/// that is cut off or wrongly framed.
result<size_t> plain_bytes_in(bytes_view chunks);

}  // namespace lethe
