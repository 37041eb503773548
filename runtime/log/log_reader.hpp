#pragma once

#include "runtime/log/log_entry.hpp"
#include "runtime/log/signed_head.hpp"
#include "runtime/log/tiles.hpp"

namespace lethe {

struct indexed_entry {
  uint64_t index = 0;
  log_entry entry;
  bool operator==(const indexed_entry&) const = default;
};

/// What a reader knows for good, and keeps: the head that it saw last, the subtrees that its root
/// is made of, and the newest entry of each kind.
struct log_memory {
  signed_head note;
  merkle_frontier tree;
  std::vector<indexed_entry> newest;

  const indexed_entry* of(log_kind kind) const;
  std::vector<std::byte> to_bytes() const;
  static result<log_memory> from_bytes(bytes_view bytes);
};

/// Proof that a log told two stories: kept, shown to others, never deleted.
struct log_evidence {
  struct witnessed_entry {
    uint64_t index = 0;
    std::vector<std::byte> bytes;
    merkle_proof inclusion;  // in the later head; empty if the tiles for it were not served
  };
  std::string what;
  signed_head earlier, later;  // two heads, of which no log may sign both, for a fork
  hash32 continued{};          // the root at the earlier size that the later one continues
  merkle_proof consistency;    // of those two
  std::vector<witnessed_entry> entries;  // the two of one kind and epoch, for a duplicate

  /// For a file and for human eyes.
  std::string text() const;
};

struct log_rules {
  note_trust trust;
  /// A first-time reader takes in at least so many of the last entries, and goes back further until
  /// it has one of each of these kinds.
  uint32_t first_entries = 1024;
  std::vector<log_kind> needed = {log_kinds.begin(), log_kinds.end()};
  /// How far the newest roster's not-before may lie back.
  uint32_t roster_age_max_s = 1200;
};

/// A client's side of the log. Refusals begin with what is wrong: "log: bad signature", "no
/// quorum", "fork", "shrank", "stale", "clock", "duplicate", "gap", "altered", "missing".
class log_reader {
 public:
  /// `memory` is what an earlier reader of this log kept; none for a first time.
  explicit log_reader(log_rules rules, std::optional<log_memory> memory = {})
      : rules_(std::move(rules)), memory_(std::move(memory)) {}

  /// Takes in what is new, every entry of it; or refuses, and remembers what it did before. `now_s`
  /// is the local clock. Once there is evidence every read is refused.
  result<void> read(const log_fetch& fetch, uint64_t now_s);

  const std::optional<log_memory>& memory() const noexcept { return memory_; }
  /// The newest of a kind; nothing before the first read.
  const log_entry* current(log_kind kind) const;
  /// All that the last good read took in, in order.
  const std::vector<indexed_entry>& news() const noexcept { return news_; }
  const std::optional<log_evidence>& evidence() const noexcept { return evidence_; }

 private:
  struct reading;  // one read, under way
  result<void> check_head(reading& r);
  result<void> check_against_last(reading& r);
  result<void> take_entries(reading& r);
  result<void> go_back(reading& r);
  result<void> check_order(reading& r);
  result<void> check_kinds(const reading& r) const;
  error explain_roots(reading& r);
  error repeated(reading& r, const indexed_entry& again);

  log_rules rules_;
  std::optional<log_memory> memory_;
  std::vector<indexed_entry> news_;
  std::optional<log_evidence> evidence_;
};

/// Cosignatures' times against the local clock: their median is at most
/// limits::log_clock_off_max_s off. Gives the median; without any, the clock itself.
result<uint64_t> check_age(std::span<const uint64_t> times, uint64_t now_s);

}  // namespace lethe
