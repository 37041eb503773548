#pragma once

#include <array>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/tokenizer/merge_table.hpp"
#include "runtime/tokenizer/vocabulary.hpp"
#include "runtime/tokenizer/word_table.hpp"

namespace lethe {

struct bpe_options {
  std::optional<uint32_t> unk;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;  // a word that is a token is that token
  std::string continuing_prefix, end_suffix;
};

/// Byte pair encoding by ranked merges. The vocabulary must outlive it.
class bpe {
 public:
  struct text_pair {
    std::string_view left, right;
  };
  static result<bpe> make(const vocabulary& v, bpe_options options,
                          std::span<const text_pair> merges);

  /// Working memory, used again from word to word.
  struct scratch {
    explicit scratch(std::pmr::memory_resource* memory)
        : seeds(memory), symbols(memory), heap(memory) {}
    struct seed {
      uint32_t id;
      uint32_t begin;  // of its text in the word
    };
    struct symbol {
      uint32_t id, prev, next;
      uint32_t rank;  // of the merge with the next one
    };
    std::pmr::vector<seed> seeds;      // of the whole word
    std::pmr::vector<symbol> symbols;  // of a window of it: a linked list; joined ones leave it
    std::pmr::vector<uint64_t> heap;   // a merge's rank, then its left symbol: the least is next
    uint64_t steps = 0;                // candidates looked at, for whoever measures
    uint32_t window = 512;             // so many symbols at once, or more where that is too few
  };
  /// Linear in the length of the word, for almost all; n log^2 n at worst.
  void encode(std::string_view word, scratch& s, std::pmr::vector<uint32_t>& out) const;
  /// The same by merges alone, whatever the table of whole words knows.
  void encode_by_merges(std::string_view word, scratch& s, std::pmr::vector<uint32_t>& out) const;

 private:
  bpe(const vocabulary& v, bpe_options options, size_t merges);
  std::optional<uint32_t> character_id(std::string_view c, bool first, bool last) const;
  bool add_bytes(std::string_view c, size_t begin, scratch& s) const;
  void seed(std::string_view word, scratch& s) const;
  void offer(uint32_t left, scratch& s) const;
  void merge(uint32_t begin, uint32_t end, scratch& s) const;
  void write_few(uint32_t begin, uint32_t end, scratch& s, std::pmr::vector<uint32_t>& out) const;
  bool write_by(uint32_t window, uint32_t begin, uint32_t end, scratch& s,
                std::pmr::vector<uint32_t>& out) const;
  void write(uint32_t begin, uint32_t end, scratch& s, std::pmr::vector<uint32_t>& out) const;
  void know_characters();
  void know_words();
  neighbours neighbours_in(std::span<const text_pair> merges) const;

  const vocabulary* vocabulary_;
  bpe_options options_;
  merge_table merges_;
  std::vector<uint32_t> joined_;  // by rank
  neighbours neighbours_;
  std::vector<uint32_t> character_ids_;  // by code point, of those that are tokens
  std::array<uint32_t, 256> byte_ids_;   // of <0x00> to <0xFF>
  word_table words_;                     // texts whose merges end in one token
  std::vector<bool> others_;             // by hash: whether a token may be none of `words_`
};

/// The ids of <0x00> to <0xFF>, UINT32_MAX where a vocabulary has none.
std::array<uint32_t, 256> byte_token_ids(const vocabulary& v);

}  // namespace lethe
