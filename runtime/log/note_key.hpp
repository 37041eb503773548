#pragma once

#include <string>

#include "runtime/crypto/ed25519.hpp"

/// Keys of signed notes, in the text forms that notes' tools share.
namespace lethe {

enum class note_algorithm : uint8_t {
  ed25519 = 1,      // a log's own signature, over the note's text
  cosignature = 4,  // a witness's, over a time and the text
};

/// What others know of a signer.
class note_key {
 public:
  static result<note_key> make(std::string name, note_algorithm algorithm,
                               const hash32& public_key);
  /// NAME+KEYID+BASE64(algorithm ‖ public key).
  static result<note_key> parse(std::string_view text);
  std::string text() const;

  const std::string& name() const noexcept { return name_; }
  note_algorithm algorithm() const noexcept { return algorithm_; }
  const hash32& public_key() const noexcept { return public_key_; }
  /// The first four bytes of SHA-256(name ‖ 0A ‖ algorithm ‖ public key).
  uint32_t id() const noexcept { return id_; }
  bool operator==(const note_key&) const = default;

 private:
  note_key() = default;
  std::string name_;
  note_algorithm algorithm_{};
  hash32 public_key_{};
  uint32_t id_ = 0;
};

/// A text that is wiped where it dies. Not for texts of up to 15 characters, which lie in the
/// object.
struct wiped_text {
  std::string text;
  wiped_text() = default;
  wiped_text(wiped_text&&) = default;
  wiped_text& operator=(wiped_text&&) = delete;
  ~wiped_text();
};

/// A key that signs.
class note_signer {
 public:
  static result<note_signer> make(std::string name, note_algorithm algorithm, bytes_view seed);
  /// PRIVATE+KEY+NAME+KEYID+BASE64(algorithm ‖ seed).
  static result<note_signer> parse(std::string_view text);

  const note_key& key() const noexcept { return key_; }
  signature sign(bytes_view message) const { return sign_.sign(message); }

 private:
  note_signer(note_key key, signing_key sign) : key_(std::move(key)), sign_(std::move(sign)) {}
  note_key key_;
  signing_key sign_;
};

/// A new private key as text, for a file that only its owner reads.
result<wiped_text> make_private_note_key(std::string_view name, note_algorithm algorithm);

/// Of printable ASCII but blanks and '+', 1 to limits::log_name_bytes_max.
bool is_note_name(std::string_view name) noexcept;

}  // namespace lethe
