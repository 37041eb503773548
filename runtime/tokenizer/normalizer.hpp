#pragma once

#include <memory_resource>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/tokenizer/charsmap.hpp"
#include "runtime/tokenizer/pattern.hpp"
#include "runtime/tokenizer/unicode.hpp"

/// What happens to a text before it is cut: the "normalizer" of tokenizer.json.
namespace lethe::normalizers {

struct lowercase {};
struct strip {
  bool left = true, right = true;
};
struct strip_accents {};
struct prepend {
  std::string text;
};
struct replace {
  pattern what;
  std::string with;
};
struct nmt {};
struct byte_level {};
struct bert {
  bool clean_text, chinese_chars, strip_accents, lowercase;
};

using any = std::variant<unicode::form, lowercase, strip, strip_accents, prepend, replace, charsmap,
                         nmt, byte_level, bert>;

/// Rewrites `text` by each in turn. `text` must be valid UTF-8 and stays so.
result<void> apply(std::span<const any> all, std::pmr::string& text, match_session& s);

}  // namespace lethe::normalizers
