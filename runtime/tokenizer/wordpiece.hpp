#pragma once

#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/vocabulary.hpp"

namespace lethe {

/// The longest token that fits, again and again; a word with a rest is unknown as a whole.
/// Without pieces (`whole_words`) this is a plain list of words. The vocabulary must outlive it.
struct wordpiece {
  const vocabulary* tokens = nullptr;
  uint32_t unk = 0;
  std::string continuing_prefix = "##";
  size_t characters_max = 100;
  bool whole_words = false;

  struct scratch {
    explicit scratch(std::pmr::memory_resource* memory) : text(memory) {}
    std::pmr::string text;
  };
  void encode(std::string_view word, scratch& s, std::pmr::vector<uint32_t>& out) const;
};

}  // namespace lethe
