#include "runtime/tokenizer/component_json.hpp"

namespace lethe::json {
namespace {

using decoders::step;

result<step> read_strip(object o) {
  auto content = text(o, "content", " ");
  auto start = number(o, "start", 0), stop = number(o, "stop", 0);
  if (!content) return content.why();
  if (!start) return start.why();
  if (!stop) return stop.why();
  if (content->empty()) return fail("\"content\" is empty");
  return step(decoders::strip{std::string(*content), *start, *stop});
}

result<step> read_replace(object o) {
  auto what = read_pattern_text(o);
  if (!what) return what.why();
  auto compiled = read_pattern(o);
  auto with = text(o, "content");
  if (!compiled) return compiled.why();
  if (!with) return with.why();
  return step(decoders::replace{*std::move(compiled), what->is_regex, std::string(what->text),
                                std::string(*with)});
}

result<step> read_metaspace(object o) {
  auto replacement = text(o, "replacement", "▁");
  auto prefix = flag(o, "add_prefix_space");
  if (!replacement) return replacement.why();
  if (!prefix) return prefix.why();
  auto scheme = text(o, "prepend_scheme", prefix->value_or(true) ? "always" : "never");
  if (!scheme) return scheme.why();
  if (replacement->empty()) return fail("\"replacement\" is empty");
  return step(decoders::metaspace{std::string(*replacement), *scheme != "never"});
}

result<step> read_wordpiece(object o) {
  auto prefix = text(o, "prefix", "##");
  auto cleanup = flag(o, "cleanup", true);
  if (!prefix) return prefix.why();
  if (!cleanup) return cleanup.why();
  return step(decoders::wordpiece{std::string(*prefix), *cleanup});
}

result<step> read_word_suffix(object o) {
  auto suffix = text(o, "suffix", "</w>");
  if (!suffix) return suffix.why();
  return step(decoders::word_suffix{std::string(*suffix)});
}

result<step> read_one(std::string_view type, object o) {
  if (type == "ByteLevel") return step(decoders::byte_level{});
  if (type == "ByteFallback") return step(decoders::byte_fallback{});
  if (type == "Fuse") return step(decoders::fuse{});
  if (type == "Strip") return read_strip(o);
  if (type == "Replace") return read_replace(o);
  if (type == "Metaspace") return read_metaspace(o);
  if (type == "WordPiece") return read_wordpiece(o);
  if (type == "BPEDecoder") return read_word_suffix(o);
  return fail("not supported");
}

}  // namespace

result<std::vector<step>> read_decoders(element e) {
  std::vector<step> all;
  auto read = [](std::string_view type, object o, std::vector<step>& out) -> result<void> {
    auto one = read_one(type, o);
    if (!one) return one.why();
    out.push_back(*std::move(one));
    return {};
  };
  auto done = read_each(e, "decoder", "decoders", 0, all, read);
  if (!done) return done.why();
  auto valid = decoders::validate(all);
  if (!valid) return valid.why();
  return all;
}

}  // namespace lethe::json
