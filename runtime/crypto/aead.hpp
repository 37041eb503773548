#pragma once

#include <initializer_list>
#include <limits>

#include "runtime/base/result.hpp"
#include "runtime/crypto/key_bytes.hpp"
#include "runtime/crypto/openssl.hpp"

namespace lethe {

/// The numbers of RFC 9180, section 7.3.
enum class aead_id : uint16_t { aes_128_gcm = 1, aes_256_gcm = 2, chacha20_poly1305 = 3 };

inline constexpr size_t aead_nonce_bytes = 12;  // Nn and Nt are the same for all three
inline constexpr size_t aead_tag_bytes = 16;
constexpr size_t aead_key_bytes(aead_id id) { return id == aead_id::aes_128_gcm ? 16 : 32; }

using aead_nonce = std::array<std::byte, aead_nonce_bytes>;

/// base XOR the number of the message, counted from `next`. Never the same twice.
struct nonce_counter {
  static constexpr uint64_t end = std::numeric_limits<uint64_t>::max();

  key_bytes base;
  uint64_t next = 0;

  void skip_to(uint64_t number) noexcept {
    check(number >= next);
    next = number;
  }
  bool used_up() const noexcept { return next == end; }
  aead_nonce current() const noexcept;
};

/// One key in one direction, keyed once; from then on only the nonce changes. The key is cleared
/// with the object.
class aead {
 public:
  static aead sealing(aead_id id, bytes_view key) { return aead(id, key, 1); }
  static aead opening(aead_id id, bytes_view key) { return aead(id, key, 0); }

  /// Writes the parts of the plaintext, sealed as one, and aead_tag_bytes to `out`.
  void seal(const aead_nonce& nonce, bytes_view aad, std::initializer_list<bytes_view> plain,
            std::byte* out);
  /// Writes sealed.size() - aead_tag_bytes to `out`. False if it was not sealed with this key,
  /// nonce and aad; what `out` got is wiped then.
  [[nodiscard]] bool open(const aead_nonce& nonce, bytes_view aad, bytes_view sealed,
                          std::byte* out);

 private:
  aead(aead_id id, bytes_view key, int seals);
  openssl::cipher_context context_;
};

}  // namespace lethe
