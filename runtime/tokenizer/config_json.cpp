#include "runtime/tokenizer/config_json.hpp"

#include "runtime/base/json_numbers.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/tokenizer/json_fields.hpp"

namespace lethe::json {
namespace {

// "<s>", or {"content": "<s>", ...}. A name that the vocabulary lacks names nothing.
result<void> read_token(object o, std::string_view key, const vocabulary& tokens,
                        std::optional<uint32_t>& out) {
  auto e = find(o, key);
  if (!e) return {};
  std::string_view content;
  if (e->get(content)) {
    object inner;
    if (e->get(inner)) return fail("\"{}\" is neither a text nor an object", key);
    auto named = text(inner, "content");
    if (!named) return fail("\"{}\": {}", key, named.why().text);
    content = *named;
  }
  if (auto id = tokens.id_of(content)) out = id;
  return {};
}

result<void> read_templates(object o, tokenizer_parts& parts) {
  auto e = find(o, "chat_template");
  if (!e) return {};
  auto keep = [&parts](std::string_view name, std::string_view source) -> result<void> {
    if (source.size() > limits::template_bytes_max)
      return fail("\"chat_template\" is longer than {} bytes", limits::template_bytes_max);
    parts.templates.emplace_back(name, source);
    return {};
  };
  std::string_view source;
  if (!e->get(source)) return keep("default", source);
  auto all = as_array(*e, "chat_template");
  if (!all) return all.why();
  for (element one : *all) {
    auto entry = as_object(one, "chat_template");
    if (!entry) return entry.why();
    auto name = text(*entry, "name");
    auto body = text(*entry, "template");
    if (!name) return name.why();
    if (!body) return body.why();
    auto kept = keep(*name, *body);
    if (!kept) return kept;
  }
  return {};
}

// Llama's and Gemma's classes rebuild the post-processor from their flags; others only add.
bool flags_rule(std::string_view tokenizer_class) {
  return tokenizer_class.starts_with("Llama") || tokenizer_class.starts_with("CodeLlama") ||
         tokenizer_class.starts_with("Gemma");
}

result<void> read_flags(object o, tokenizer_parts& parts) {
  auto bos = flag(o, "add_bos_token"), eos = flag(o, "add_eos_token");
  auto name = text(o, "tokenizer_class", "");
  if (!bos) return bos.why();
  if (!eos) return eos.why();
  if (!name) return name.why();
  auto& first = parts.before;
  auto& last = parts.after;
  bool has_bos = parts.bos && !first.empty() && first.front() == *parts.bos;
  bool has_eos = parts.eos && !last.empty() && last.back() == *parts.eos;
  if (*bos && parts.bos) {
    if (**bos && !has_bos) first.insert(first.begin(), *parts.bos);
    if (!**bos && has_bos && flags_rule(*name)) first.erase(first.begin());
  }
  if (*eos && parts.eos) {
    if (**eos && !has_eos) last.push_back(*parts.eos);
    if (!**eos && has_eos && flags_rule(*name)) last.pop_back();
  }
  return {};
}

}  // namespace

result<void> read_config(std::string_view source, tokenizer_parts& parts) {
  if (source.size() > limits::json_file_bytes_max)
    return fail("{} bytes; at most {} are read", source.size(), limits::json_file_bytes_max);
  simdjson::dom::parser parser;
  object o;
  if (auto bad = parser.parse(widen_integers(source)).get(o))
    return fail("not a JSON object: {}", simdjson::error_message(bad));
  for (auto [key, out] : {std::pair("bos_token", &parts.bos), std::pair("eos_token", &parts.eos),
                          std::pair("unk_token", &parts.unk), std::pair("pad_token", &parts.pad)}) {
    auto done = read_token(o, key, parts.tokens, *out);
    if (!done) return done;
  }
  auto flags = read_flags(o, parts);
  if (!flags) return flags;
  return read_templates(o, parts);
}

}  // namespace lethe::json
