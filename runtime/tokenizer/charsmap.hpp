#pragma once

#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace lethe {

/// SentencePiece's precompiled table of replacements: a double-array trie whose values are
/// offsets into a pool of texts, each ended by a zero byte.
class charsmap {
 public:
  static result<charsmap> from_base64(std::string_view text);
  static result<charsmap> from_bytes(std::string_view bytes);

  /// Appends valid UTF-8 `text` with the longest match at each place replaced.
  void apply(std::string_view text, std::pmr::string& out) const;

 private:
  struct hit {
    size_t length = 0;
    std::string_view with;
  };
  hit longest(std::string_view text) const noexcept;
  std::vector<uint32_t> units_;
  std::string pool_;
};

}  // namespace lethe
