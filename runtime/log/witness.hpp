#pragma once

#include <filesystem>
#include <map>

#include "runtime/base/locked_file.hpp"
#include "runtime/log/merkle.hpp"
#include "runtime/log/signed_head.hpp"

/// A witness vouches that a log only grew: it remembers the largest head of each, and cosigns
/// only what continues it. Its protocol is the public add-checkpoint call.
namespace lethe {

/// What a log asks: "old N", a line for each hash of the proof, an empty line, the note.
struct witness_ask {
  uint64_t old_size = 0;
  merkle_proof proof;  // from the old size to the note's
  signed_head note;

  std::string text() const;
  static result<witness_ask> parse(std::string_view text);
};

struct witness_answer {
  uint16_t status = 200;
  std::string type;
  std::string body;  // 200: signature lines; 409: the size that the witness saw last
};

class witness {
 public:
  /// State lies in `folder`, one file a log; one process at a time. The signer's algorithm is 04.
  static result<witness> open(const std::filesystem::path& folder, note_signer signer,
                              std::vector<note_key> logs);

  /// 200; 400 bad form, or an old size above the new one; 403 no signature of the log; 404 a log
  /// that it does not know; 409 another old size than the one it saw last, or another root at the
  /// same size; 422 a proof that fails; 500 its disk failed. It remembers before it answers 200.
  witness_answer add_checkpoint(std::string_view body, uint64_t now_s);

  /// The largest head that it cosigned.
  const tree_head* last(const std::string& origin) const;

 private:
  witness(std::filesystem::path folder, note_signer signer, locked_file lock)
      : folder_(std::move(folder)), signer_(std::move(signer)), lock_(std::move(lock)) {}
  std::filesystem::path file_of(const std::string& origin) const;
  result<void> know(note_key log);
  witness_answer judge(const witness_ask& ask, tree_head& last, uint64_t now_s);

  struct known_log {
    note_key key;
    tree_head last;
  };
  std::filesystem::path folder_;
  note_signer signer_;
  locked_file lock_;
  std::map<std::string, known_log> logs_;  // by origin
};

}  // namespace lethe
