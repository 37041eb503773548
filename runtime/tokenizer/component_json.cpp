#include "runtime/tokenizer/component_json.hpp"

#include <iterator>

namespace lethe::json {
namespace {

constexpr size_t added_text_bytes_max = 4096;
constexpr size_t surroundings_max = 1024;

// ["[CLS]", 101] of BertProcessing.
result<uint32_t> read_named_id(object o, std::string_view key) {
  auto both = list(o, key);
  if (!both) return both.why();
  uint64_t id = 0;
  if (both->size() != 2 || both->at(1).get(id) || id > UINT32_MAX)
    return fail("\"{}\" is not [text, id]", key);
  return uint32_t(id);
}

result<std::vector<uint32_t>> read_ids(object special_tokens, std::string_view name) {
  auto entry = find(special_tokens, name);
  if (!entry) return fail("special token {} is not defined", name);
  auto o = as_object(*entry, name);
  if (!o) return o.why();
  auto ids = list(*o, "ids");
  if (!ids) return ids.why();
  std::vector<uint32_t> out;
  for (element e : *ids) {
    uint64_t id = 0;
    if (e.get(id) || id > UINT32_MAX) return fail("special token {}: an id is no number", name);
    out.push_back(uint32_t(id));
  }
  return out;
}

result<surroundings> read_template(object o) {
  auto pieces = list(o, "single");
  if (!pieces) return pieces.why();
  auto table = find(o, "special_tokens");
  object specials;
  if (!table || table->get(specials)) return fail("\"special_tokens\" is not an object");
  surroundings out;
  uint32_t texts = 0;
  for (element e : *pieces) {
    auto piece = as_object(e, "single");
    if (!piece) return piece.why();
    if (find(*piece, "Sequence")) {
      texts++;
      continue;
    }
    auto special = find(*piece, "SpecialToken");
    object named;
    if (!special || special->get(named)) return fail("a piece that is no Sequence or SpecialToken");
    auto name = text(named, "id");
    if (!name) return name.why();
    auto ids = read_ids(specials, *name);
    if (!ids) return ids.why();
    auto& side = texts ? out.after : out.before;
    side.insert(side.end(), ids->begin(), ids->end());
  }
  if (texts != 1) return fail("\"single\" must hold the text once");
  return out;
}

result<surroundings> read_one(std::string_view type, object o) {
  if (type == "ByteLevel") return surroundings{};
  if (type == "TemplateProcessing") return read_template(o);
  if (type != "BertProcessing" && type != "RobertaProcessing") return fail("not supported");
  auto cls = read_named_id(o, "cls"), sep = read_named_id(o, "sep");
  if (!cls) return cls.why();
  if (!sep) return sep.why();
  return surroundings{{*cls}, {*sep}};
}

result<added_token_entry> read_added_token(object o) {
  auto id = number(o, "id");
  auto content = text(o, "content");
  auto special = flag(o, "special", false), word = flag(o, "single_word", false);
  auto left = flag(o, "lstrip", false), right = flag(o, "rstrip", false);
  if (!id) return id.why();
  if (!content) return content.why();
  for (auto* one : {&special, &word, &left, &right})
    if (!*one) return one->why();
  auto normalized = flag(o, "normalized", !*special);
  if (!normalized) return normalized.why();
  if (content->size() > added_text_bytes_max)
    return fail("token {} is longer than {} bytes", *id, added_text_bytes_max);
  return added_token_entry{{*id, std::string(*content), *special, *word, *left, *right},
                           *normalized};
}

}  // namespace

result<surroundings> read_surroundings(element e) {
  std::vector<surroundings> all;
  auto read = [](std::string_view type, object o, std::vector<surroundings>& out) -> result<void> {
    auto one = read_one(type, o);
    if (!one) return one.why();
    out.push_back(*std::move(one));
    return {};
  };
  auto done = read_each(e, "post_processor", "processors", 0, all, read);
  if (!done) return done.why();
  surroundings sum;  // each stands around what the one before made
  for (auto& one : all) {
    sum.before.insert(sum.before.begin(), one.before.begin(), one.before.end());
    sum.after.insert(sum.after.end(), one.after.begin(), one.after.end());
  }
  if (std::max(sum.before.size(), sum.after.size()) > surroundings_max)
    return fail("post_processor: more than {} tokens around a text", surroundings_max);
  return sum;
}

result<std::vector<added_token_entry>> read_added_tokens(array entries) {
  std::vector<added_token_entry> all;
  for (element e : entries) {
    auto o = as_object(e, "added_tokens");
    if (!o) return o.why();
    auto one = read_added_token(*o);
    if (!one) return fail("added_tokens: {}", one.why().text);
    all.push_back(*std::move(one));
  }
  return all;
}

result<pattern_text> read_pattern_text(object owner) {
  auto e = find(owner, "pattern");
  if (!e) return fail("\"pattern\" is missing");
  pattern_text out{{}, false};
  if (e->get(out.text)) {
    auto o = as_object(*e, "pattern");
    if (!o) return o.why();
    out.is_regex = bool(find(*o, "Regex"));
    auto inner = text(*o, out.is_regex ? "Regex" : "String");
    if (!inner) return inner.why();
    out.text = *inner;
  }
  if (out.text.empty()) return fail("\"pattern\" is empty");
  return out;
}

result<pattern> read_pattern(object owner) {
  auto what = read_pattern_text(owner);
  if (!what) return what.why();
  return what->is_regex ? pattern::split(what->text) : pattern::literal(std::string(what->text));
}

}  // namespace lethe::json
