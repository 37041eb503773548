#pragma once

#include <array>
#include <memory_resource>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/tokenizer/merge_table.hpp"
#include "runtime/tokenizer/vocabulary.hpp"

namespace lethe {

/// SentencePiece's byte pair encoding: of all neighbours that together spell a token, those of
/// the best score join first. What remains unknown becomes byte tokens. The vocabulary must
/// outlive it.
class score_bpe {
 public:
  static result<score_bpe> make(const vocabulary& v, std::vector<float> scores,
                                std::optional<uint32_t> unk);

  struct scratch {
    explicit scratch(std::pmr::memory_resource* memory) : symbols(memory), heap(memory) {}
    struct symbol {
      uint32_t begin, length, prev, next;
    };
    struct candidate {
      uint64_t order;  // by score, then by place: the least is next
      uint32_t length;
      uint32_t left() const { return uint32_t(order); }
      bool operator>(const candidate& other) const { return order > other.order; }
    };
    std::pmr::vector<symbol> symbols;  // a linked list; joined ones have length 0
    std::pmr::vector<candidate> heap;
  };
  void encode(std::string_view text, scratch& s, std::pmr::vector<uint32_t>& out) const;

 private:
  score_bpe(const vocabulary& v, std::vector<float> scores, std::optional<uint32_t> unk);
  void offer(uint32_t left, std::string_view text, scratch& s) const;
  void merge(std::string_view text, uint32_t begin, uint32_t end, scratch& s) const;
  void write(std::string_view symbol, std::pmr::vector<uint32_t>& out) const;

  const vocabulary* vocabulary_;
  std::vector<float> scores_;
  neighbours neighbours_;  // of code points
  std::optional<uint32_t> unk_;
  std::array<uint32_t, 256> byte_ids_;
};

}  // namespace lethe
