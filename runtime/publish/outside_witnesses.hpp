#pragma once

#include "runtime/log/witness.hpp"
#include "runtime/publish/publisher.hpp"

namespace lethe {

/// Witnesses of a cluster's log that others run: what each is to be asked, what it said of the
/// newest head, and when that head is published. Who carries asks and answers is the caller.
class outside_witnesses {
 public:
  /// For one head: who hasn't answered by then is not waited for.
  static constexpr uint64_t patience_ns = 2'000'000'000;
  /// After an answer that is no cosignature.
  static constexpr uint64_t again_ns = 5'000'000'000;
  /// How long a word of the newest head is good beside a younger one that did not come.
  static constexpr uint64_t word_ns = 60'000'000'000;

  /// `from` outlives this, and has a log that is `witnessed`.
  outside_witnesses(publisher& from, std::vector<note_key> keys);

  struct ask {
    size_t witness = 0;  // index of its key
    std::string body;    // of add-checkpoint
  };
  /// Whom to ask now; `said` follows each, and nobody is asked twice before it.
  std::vector<ask> due(uint64_t now_ns);
  /// Status and body, or why there was no answer.
  void said(size_t witness, const result<witness_answer>& how, uint64_t now_ns);
  /// Publishes the newest head once all have given their word or patience is over, and again with
  /// each word that comes later.
  result<void> publish(uint64_t now_ns);
  /// Who did not cosign the newest head, and why; empty if all did.
  std::string note() const;

 private:
  struct one {
    note_key key;
    uint64_t seen = 0;  // entries that it saw last, as far as we know
    bool asking = false;
    signed_head asked;         // the head of the last ask
    uint64_t asked_round = 0;  // and its round
    uint64_t settled = 0;      // last round that it answered in, well or badly
    uint64_t good = 0;         // last round that it cosigned in
    uint64_t not_before_ns = 0;
    bool told = false;  // its size, by a 409: twice in a row is once too often
    note_signature word;
    tree_head word_of;
    uint64_t word_at_ns = 0;
    std::string trouble;
  };
  std::vector<note_signature> words(uint64_t now_ns) const;
  void follow(uint64_t now_ns);
  void cosigned(one& w, std::string_view lines, uint64_t now_ns);
  void conflict(one& w, std::string_view body, uint64_t now_ns);
  void failed(one& w, std::string why, uint64_t now_ns);
  bool settled(uint64_t now_ns) const;

  publisher& from_;
  std::vector<one> all_;
  uint64_t round_ = 0, begun_ns_ = 0;
  bool news_ = false;  // that are not published
};

}  // namespace lethe
