#include "runtime/tokenizer/component_json.hpp"

namespace lethe::json {
namespace {

using normalizers::any;
using all = std::vector<any>;

// False where the type is none of these.
bool read_without_settings(std::string_view type, all& out) {
  if (type == "NFC")
    out.emplace_back(unicode::form::nfc);
  else if (type == "NFD")
    out.emplace_back(unicode::form::nfd);
  else if (type == "NFKC")
    out.emplace_back(unicode::form::nfkc);
  else if (type == "NFKD")
    out.emplace_back(unicode::form::nfkd);
  else if (type == "Lowercase")
    out.emplace_back(normalizers::lowercase{});
  else if (type == "StripAccents")
    out.emplace_back(normalizers::strip_accents{});
  else if (type == "Nmt")
    out.emplace_back(normalizers::nmt{});
  else if (type == "ByteLevel")
    out.emplace_back(normalizers::byte_level{});
  else
    return false;
  return true;
}

result<void> read_strip(object o, all& out) {
  auto left = flag(o, "strip_left", true), right = flag(o, "strip_right", true);
  if (!left) return left.why();
  if (!right) return right.why();
  out.emplace_back(normalizers::strip{*left, *right});
  return {};
}

result<void> read_prepend(object o, all& out) {
  auto what = text(o, "prepend");
  if (!what) return what.why();
  out.emplace_back(normalizers::prepend{std::string(*what)});
  return {};
}

result<void> read_replace(object o, all& out) {
  auto what = read_pattern(o);
  auto with = text(o, "content");
  if (!what) return what.why();
  if (!with) return with.why();
  out.emplace_back(normalizers::replace{*std::move(what), std::string(*with)});
  return {};
}

result<void> read_precompiled(object o, all& out) {
  auto encoded = text(o, "precompiled_charsmap", "");
  if (!encoded) return encoded.why();
  auto map = charsmap::from_base64(*encoded);
  if (!map) return map.why();
  out.emplace_back(*std::move(map));
  return {};
}

result<void> read_bert(object o, all& out) {
  auto clean = flag(o, "clean_text", true), chinese = flag(o, "handle_chinese_chars", true);
  auto lower = flag(o, "lowercase", true);
  auto accents = flag(o, "strip_accents");
  if (!clean) return clean.why();
  if (!chinese) return chinese.why();
  if (!lower) return lower.why();
  if (!accents) return accents.why();
  out.emplace_back(normalizers::bert{*clean, *chinese, accents->value_or(*lower), *lower});
  return {};
}

result<void> read_one(std::string_view type, object o, all& out) {
  if (type == "Strip") return read_strip(o, out);
  if (type == "Prepend") return read_prepend(o, out);
  if (type == "Replace") return read_replace(o, out);
  if (type == "Precompiled") return read_precompiled(o, out);
  if (type == "BertNormalizer") return read_bert(o, out);
  if (read_without_settings(type, out)) return {};
  return fail("not supported");
}

}  // namespace

result<all> read_normalizers(element e) {
  all out;
  auto done = read_each(e, "normalizer", "normalizers", 0, out, read_one);
  if (!done) return done.why();
  return out;
}

}  // namespace lethe::json
