#pragma once

#include <vector>

#include "runtime/tokenizer/added_tokens.hpp"
#include "runtime/tokenizer/decoder.hpp"
#include "runtime/tokenizer/json_fields.hpp"
#include "runtime/tokenizer/normalizer.hpp"
#include "runtime/tokenizer/pre_tokenizer.hpp"

/// Readers of tokenizer.json's parts. A type that we do not know is refused by its name.
namespace lethe::json {

/// A sequence in a sequence is read flat, to this depth.
inline constexpr uint32_t nesting_max = 8;

result<std::vector<normalizers::any>> read_normalizers(element e);
result<std::vector<pre_tokenizers::any>> read_pre_tokenizers(element e);
result<std::vector<decoders::step>> read_decoders(element e);

/// What stands around a text: the "post_processor".
struct surroundings {
  std::vector<uint32_t> before, after;
};
result<surroundings> read_surroundings(element e);

struct added_token_entry {
  added_token token;
  bool normalized = false;  // looked for in the normalized text
};
result<std::vector<added_token_entry>> read_added_tokens(array entries);

/// {"String": "..."} or {"Regex": "..."}, or a plain text. An empty one is refused.
struct pattern_text {
  std::string_view text;
  bool is_regex;
};
result<pattern_text> read_pattern_text(object owner);
result<pattern> read_pattern(object owner);

/// Calls `read(type, object, out)` for `e`, or for each member of a "Sequence".
template <class T, class Read>
result<void> read_each(element e, std::string_view kind, std::string_view members, uint32_t depth,
                       std::vector<T>& out, Read read) {
  auto o = as_object(e, kind);
  if (!o) return o.why();
  auto type = text(*o, "type");
  if (!type) return fail("{}: {}", kind, type.why().text);
  if (*type != "Sequence") {
    result<void> done = read(*type, *o, out);
    return done ? done : fail("{} {}: {}", kind, *type, done.why().text);
  }
  if (depth == nesting_max) return fail("{}: nested deeper than {}", kind, nesting_max);
  auto all = list(*o, members);
  if (!all) return fail("{}: {}", kind, all.why().text);
  for (element one : *all) {
    auto done = read_each(one, kind, members, depth + 1, out, read);
    if (!done) return done;
  }
  return {};
}

}  // namespace lethe::json
