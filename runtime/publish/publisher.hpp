#pragma once

#include <map>

#include "runtime/crypto/ed25519.hpp"
#include "runtime/log/log_file.hpp"
#include "runtime/log/log_policy.hpp"
#include "runtime/log/roster.hpp"
#include "runtime/log/witness.hpp"
#include "runtime/token/token_challenge.hpp"
#include "runtime/token/token_directory.hpp"

namespace lethe {

inline constexpr size_t roster_bytes_max = size_t{4} << 20;

struct publish_setup {
  std::filesystem::path folder;
  std::string origin;  // the log's name, and the challenge's
  std::string issuer;  // the name in the challenge
  uint32_t minimum_nodes = 1;
  uint32_t candidates = 1;  // nodes that one seal is for
  uint32_t batch = 64;      // tokens of a purchase
  uint32_t epoch_s = 600, grace_s = 60;
  hash32 release{};  // digest of the program that the nodes run
  /// Others are asked for their word of each head: it is published when `publish` says so.
  bool witnessed = false;

  /// One that wasn't followed by another.
  uint32_t roster_age_max_s() const { return 2 * epoch_s + grace_s; }
};

/// What clients believe of a log.
struct public_note_keys {
  note_key log, witness;
};
/// Of a folder, made if they are missing; also while a publisher has it open.
result<public_note_keys> keep_public_keys(const publish_setup& setup);

struct published_node {
  node_public node;
  uint32_t capacity = 0;
  std::string model;
};

/// A model's name as a roster's class: lower case, and '-' for what has no place in a word.
std::string model_class_of(std::string_view model);

/// What a cluster says of itself in public: policy, keys and rosters, each logged and cosigned
/// before anyone is given it. Its folder holds the log, the last rosters, and three keys: the
/// log's, the cluster's own witness's, and that of the identity which signs the nodes.
class publisher {
 public:
  /// One operator runs all of it, and nothing is attested.
  static constexpr const char* policy_name = "embedded";

  /// Makes what is missing; what is there goes on. What the policy says of classes is kept.
  static result<std::unique_ptr<publisher>> open(const publish_setup& setup);

  /// Logged if they are not the last ones.
  result<void> issuer_keys(const token_directory& keys, uint64_t now_s);
  result<void> gateway_keys(bytes_view ohttp_keys, uint64_t now_s);
  /// The next roster: its number is one above the last.
  result<void> roster(uint32_t number, std::span<const published_node> nodes, uint64_t now_s);

  /// The head again, with its witness's word of now: clients take no older one.
  result<void> recosign(uint64_t now_s);

  /// The newest head, with the log's own and the cluster's witness's word.
  const signed_head& newest() const { return cosigned_; }
  /// Another one each time that the cluster's witness gave its word.
  uint64_t round() const { return round_; }
  /// What a witness is asked that saw so many entries last; at most the newest head's.
  std::string ask_text(uint64_t old_size) const;
  /// The newest head, with what others said of it.
  result<void> publish(std::span<const note_signature> others);
  /// Of witnesses, on what is published.
  uint32_t cosignatures() const;

  /// 0: there was none.
  uint32_t last_roster() const { return log_.last_epoch(log_kind::roster).value_or(0); }
  /// A whole roster: the last one, or the one before it. Null: there is no such roster.
  const std::vector<std::byte>* roster_bytes(uint32_t number) const;
  /// "checkpoint", "tile/...".
  result<std::vector<std::byte>> fetch(std::string_view path) const { return log_.fetch(path); }
  /// As it was logged last; nothing before that.
  const std::optional<token_directory>& issuer() const { return issuer_; }
  const log_policy& policy() const { return policy_; }
  const token_challenge& challenge() const { return challenge_; }
  /// The log's and the witness's public keys, for trust files.
  const public_note_keys& note_keys() const { return note_keys_; }

 private:
  publisher(publish_setup setup, log_file log, witness own, signing_key identity,
            public_note_keys keys);
  result<void> log(log_kind kind, bytes_view payload, uint64_t now_s);
  result<void> append(const log_entry& entry, uint64_t now_s);
  result<void> cosign(const signed_head& head, uint64_t seen, uint64_t now_s);
  result<void> read_last();
  result<void> log_policy_of(std::span<const published_node> nodes, uint64_t now_s);
  std::filesystem::path roster_file(uint32_t number) const;

  publish_setup setup_;
  log_file log_;
  witness witness_;
  signing_key identity_;
  public_note_keys note_keys_;
  token_challenge challenge_;
  log_policy policy_;
  signed_head cosigned_;
  uint64_t round_ = 0;
  std::optional<token_directory> issuer_;
  std::map<log_kind, std::vector<std::byte>> newest_;  // payloads
  std::map<uint32_t, std::vector<std::byte>> rosters_;
};

}  // namespace lethe
