#pragma once

#include <span>
#include <vector>

#include "runtime/log/note_key.hpp"

/// A log's head as a signed note: what is in it, who signed it, and who must have.
namespace lethe {

/// The three lines that are signed: origin, size, root.
struct tree_head {
  std::string origin;
  uint64_t size = 0;
  hash32 root{};

  bool operator==(const tree_head&) const = default;
  std::string text() const;
  /// Only what text() makes.
  static result<tree_head> parse(std::string_view text);
};

/// "— NAME BASE64(key id ‖ bytes)"; the bytes of a cosignature begin with its u64 time.
struct note_signature {
  std::string name;
  uint32_t key_id = 0;
  std::vector<std::byte> bytes;

  bool operator==(const note_signature&) const = default;
  std::string line() const;
};

struct signed_head {
  tree_head head;
  std::vector<note_signature> signatures;

  bool operator==(const signed_head&) const = default;
  std::string text() const;
  static result<signed_head> parse(std::string_view text);
};

/// Signature lines alone, as a witness answers with them.
result<std::vector<note_signature>> parse_signatures(std::string_view lines);

/// By a log's key (algorithm 01).
note_signature sign_head(const note_signer& log, const tree_head& head);
/// By a witness's key (algorithm 04): "I saw no other history, at that time", in Unix seconds.
note_signature cosign_head(const note_signer& witness, const tree_head& head, uint64_t time_s);

/// Whom a reader believes: the log whose name is the origin, and that many of the witnesses.
struct note_trust {
  note_key log;
  std::vector<note_key> witnesses;
  uint32_t quorum = 0;

  /// Kinds of keys, no key twice under other names, a quorum that can be had.
  static result<note_trust> make(note_key log, std::vector<note_key> witnesses, uint32_t quorum);
};

/// The log's own signature and the origin.
result<void> verify_head(const signed_head& note, const note_key& log);
/// That, and the quorum. The times of those cosignatures, rising. Signatures by unknown keys are
/// passed over; a wrong one by a known key refuses the note; a witness counts once.
result<std::vector<uint64_t>> verify_head(const signed_head& note, const note_trust& trust);

}  // namespace lethe
