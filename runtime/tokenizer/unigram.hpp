#pragma once

#include <array>
#include <memory_resource>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/tokenizer/byte_trie.hpp"
#include "runtime/tokenizer/vocabulary.hpp"

namespace lethe {

/// SentencePiece's unigram model: the segmentation whose scores add up to the most.
class unigram {
 public:
  /// `scores` by id, one for each token of the vocabulary. Copies what it needs.
  static result<unigram> make(const vocabulary& v, std::vector<double> scores,
                              std::optional<uint32_t> unk, bool byte_fallback);

  struct scratch {
    explicit scratch(std::pmr::memory_resource* memory) : best(memory), path(memory) {}
    struct arrival {
      double score;
      uint32_t from, id;
    };
    std::pmr::vector<arrival> best;  // the best way to arrive at each byte
    std::pmr::vector<uint32_t> path;
  };
  void encode(std::string_view word, scratch& s, std::pmr::vector<uint32_t>& out) const;

 private:
  unigram(const vocabulary& v, std::vector<double> scores, std::optional<uint32_t> unk,
          bool byte_fallback);
  void search(std::string_view word, scratch& s) const;
  void write_unknown(std::string_view text, std::pmr::vector<uint32_t>& out) const;

  std::vector<double> scores_;
  byte_trie trie_;
  std::optional<uint32_t> unk_;
  double unk_score_ = 0;
  bool byte_fallback_ = false;
  std::array<uint32_t, 256> byte_ids_;
};

}  // namespace lethe
