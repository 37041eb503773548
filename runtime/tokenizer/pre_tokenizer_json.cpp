#include "runtime/tokenizer/component_json.hpp"
#include "runtime/tokenizer/split_patterns.hpp"

namespace lethe::json {
namespace {

using pre_tokenizers::any;
using pre_tokenizers::behavior;
using all = std::vector<any>;

result<behavior> read_behavior(object o, std::string_view otherwise) {
  auto name = text(o, "behavior", otherwise);
  if (!name) return name.why();
  if (*name == "Removed") return behavior::removed;
  if (*name == "Isolated") return behavior::isolated;
  if (*name == "MergedWithPrevious") return behavior::merged_with_previous;
  if (*name == "MergedWithNext") return behavior::merged_with_next;
  if (*name == "Contiguous") return behavior::contiguous;
  return fail("behavior {} is not supported", *name);
}

result<void> read_byte_level(object o, all& out) {
  auto prefix = flag(o, "add_prefix_space", true), regex = flag(o, "use_regex", true);
  if (!prefix) return prefix.why();
  if (!regex) return regex.why();
  if (*prefix) out.emplace_back(pre_tokenizers::prefix_space{});
  if (*regex) {
    auto words = pattern::split(split_patterns::gpt2);
    if (!words) return words.why();
    out.emplace_back(pre_tokenizers::split{*std::move(words), behavior::isolated});
  }
  out.emplace_back(pre_tokenizers::byte_characters{});
  return {};
}

result<void> read_split(object o, all& out) {
  auto what = read_pattern(o);
  auto how = read_behavior(o, "");
  auto invert = flag(o, "invert", false);
  if (!what) return what.why();
  if (!how) return how.why();
  if (!invert) return invert.why();
  out.emplace_back(pre_tokenizers::split{*std::move(what), *how, *invert});
  return {};
}

// The older add_prefix_space, which newer files may still carry, only ever says "never".
result<pre_tokenizers::prepend_scheme> read_scheme(object o) {
  using scheme = pre_tokenizers::prepend_scheme;
  auto prefix = flag(o, "add_prefix_space");
  if (!prefix) return prefix.why();
  auto name = text(o, "prepend_scheme", prefix->value_or(true) ? "always" : "never");
  if (!name) return name.why();
  if (*name == "always") return scheme::always;
  if (*name == "first") return scheme::first;
  if (*name == "never") return scheme::never;
  return fail("prepend_scheme {} is not supported", *name);
}

result<void> read_metaspace(object o, all& out) {
  auto replacement = text(o, "replacement", "▁");
  auto scheme = read_scheme(o);
  auto cuts = flag(o, "split", true);
  if (!replacement) return replacement.why();
  if (!scheme) return scheme.why();
  if (!cuts) return cuts.why();
  if (replacement->empty() || replacement->size() > 4)
    return fail("\"replacement\" is not one character");
  out.emplace_back(pre_tokenizers::metaspace{std::string(*replacement), *scheme});
  if (*cuts)
    out.emplace_back(pre_tokenizers::split{pattern::literal(std::string(*replacement)),
                                           behavior::merged_with_next});
  return {};
}

result<void> read_digits(object o, all& out) {
  auto each = flag(o, "individual_digits", false);
  if (!each) return each.why();
  out.emplace_back(pre_tokenizers::split_characters{
      pre_tokenizers::characters::number, *each ? behavior::isolated : behavior::contiguous});
  return {};
}

result<void> read_punctuation(object o, all& out) {
  auto how = read_behavior(o, "Isolated");
  if (!how) return how.why();
  out.emplace_back(pre_tokenizers::split_characters{pre_tokenizers::characters::punctuation, *how});
  return {};
}

result<void> read_whitespace(all& out) {
  // These words may hold the joiners U+200C and U+200D, as nowhere else.
  auto words = pattern::regex(R"([\w\x{200C}\x{200D}]+|[^\w\s\x{200C}\x{200D}]+)");
  if (!words) return words.why();
  out.emplace_back(pre_tokenizers::split{*std::move(words), behavior::removed, true});
  return {};
}

result<void> read_delimiter(object o, all& out) {
  auto delimiter = text(o, "delimiter");
  if (!delimiter) return delimiter.why();
  out.emplace_back(
      pre_tokenizers::split{pattern::literal(std::string(*delimiter)), behavior::removed});
  return {};
}

result<void> read_one(std::string_view type, object o, all& out) {
  using pre_tokenizers::characters;
  using pre_tokenizers::split_characters;
  if (type == "ByteLevel") return read_byte_level(o, out);
  if (type == "Split") return read_split(o, out);
  if (type == "Metaspace") return read_metaspace(o, out);
  if (type == "Digits") return read_digits(o, out);
  if (type == "Punctuation") return read_punctuation(o, out);
  if (type == "Whitespace") return read_whitespace(out);
  if (type == "CharDelimiterSplit") return read_delimiter(o, out);
  if (type == "WhitespaceSplit" || type == "BertPreTokenizer") {
    out.emplace_back(split_characters{characters::white_space, behavior::removed});
    if (type == "BertPreTokenizer")
      out.emplace_back(split_characters{characters::punctuation, behavior::isolated});
    return {};
  }
  return fail("not supported");
}

}  // namespace

result<all> read_pre_tokenizers(element e) {
  all out;
  auto done = read_each(e, "pre_tokenizer", "pretokenizers", 0, out, read_one);
  if (!done) return done.why();
  if (out.size() > pre_tokenizers::steps_max)
    return fail("pre_tokenizer: {} steps; at most {} are supported", out.size(),
                pre_tokenizers::steps_max);
  return out;
}

}  // namespace lethe::json
