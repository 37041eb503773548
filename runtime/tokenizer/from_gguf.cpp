#include "runtime/tokenizer/gguf_vocab.hpp"
#include "runtime/tokenizer/split_patterns.hpp"
#include "runtime/tokenizer/tokenizer.hpp"
#include "runtime/tokenizer/tokenizer_parts.hpp"

namespace lethe {
namespace {

enum token_type : int32_t { normal = 1, unknown, control, user_defined, unused, byte };

int32_t type_of(const gguf_vocab& v, uint32_t id) {
  for (auto& named : {v.bos, v.eos, v.eot, v.eom})
    if (named == id) return control;
  return v.types.empty() ? int32_t(normal) : v.types[id];
}

result<void> read_tokens(const gguf_vocab& v, tokenizer_parts& parts) {
  if ((!v.types.empty() && v.types.size() != v.tokens.size()))
    return fail("{} token types for {} tokens", v.types.size(), v.tokens.size());
  parts.tokens.reserve(v.tokens.size(), v.tokens.size() * 8);
  std::vector<added_token> found_by_text;
  for (uint32_t id = 0; id < v.tokens.size(); id++) {
    int32_t type = type_of(v, id);
    bool special = type == control || type == unknown;
    auto kind = special ? vocabulary::kind::control : vocabulary::kind::word;
    auto added = parts.tokens.add(id, v.tokens[id], kind);
    if (!added) return added;
    if (!special && type != user_defined) continue;
    parts.mark_literal(id);
    found_by_text.push_back({.id = id, .text = std::string(v.tokens[id]), .special = special});
  }
  parts.raw_tokens = added_tokens(std::move(found_by_text));
  return {};
}

// Where bos and eos stand. `bos_first` holds where the file does not say.
result<void> read_named_tokens(const gguf_vocab& v, bool bos_first, tokenizer_parts& parts) {
  parts.bos = v.bos;
  parts.eos = v.eos;
  parts.eot = v.eot;
  parts.unk = v.unk;
  parts.pad = v.pad;
  for (auto& id : {parts.bos, parts.eos, parts.eot, parts.unk, parts.pad})
    if (id && !parts.tokens.has(*id)) return fail("special token {} is not in the vocabulary", *id);
  if (v.add_bos.value_or(bos_first) && parts.bos) parts.before.push_back(*parts.bos);
  if (v.add_eos.value_or(false) && parts.eos) parts.after.push_back(*parts.eos);
  if (!v.chat_template.empty()) parts.templates.emplace_back("default", v.chat_template);
  return {};
}

result<void> read_byte_level(const gguf_vocab& v, tokenizer_parts& parts) {
  auto family = split_patterns::find(v.pre);
  if (!family)
    return fail("tokenizer.ggml.pre {} is not supported; these are: {}", v.pre,
                split_patterns::names());
  std::vector<bpe::text_pair> merges;
  merges.reserve(v.merges.size());
  for (std::string_view merge : v.merges) {
    size_t space = merge.find(' ', 1);
    if (space == merge.npos) return fail("merge {} is not two tokens", merges.size());
    merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
  }
  auto model = bpe::make(parts.tokens, {.ignore_merges = family->ignore_merges}, merges);
  if (!model) return model.why();
  parts.model.emplace<bpe>(*std::move(model));
  for (std::string_view expression : family->patterns) {
    auto words = pattern::split(expression);
    if (!words) return words.why();
    parts.pre_tokenizers.emplace_back(
        pre_tokenizers::split{*std::move(words), pre_tokenizers::behavior::isolated});
  }
  parts.pre_tokenizers.emplace_back(pre_tokenizers::byte_characters{});
  parts.decoders.emplace_back(decoders::byte_level{});
  return read_named_tokens(v, family->adds_bos, parts);
}

result<void> read_sentencepiece(gguf_vocab v, tokenizer_parts& parts) {
  constexpr std::string_view space = "▁";
  // What these files mean where they are silent.
  if (!v.unk && v.tokens.size() > 0) v.unk = 0;
  if (!v.bos && v.tokens.size() > 1) v.bos = 1;
  if (!v.eos && v.tokens.size() > 2) v.eos = 2;
  auto model = score_bpe::make(parts.tokens, v.scores, v.unk);
  if (!model) return model.why();
  parts.model.emplace<score_bpe>(*std::move(model));
  bool prefix = v.add_space_prefix.value_or(true);
  if (prefix) parts.normalizers.emplace_back(normalizers::prepend{std::string(space)});
  parts.normalizers.emplace_back(normalizers::replace{pattern::literal(" "), std::string(space)});
  parts.decoders.emplace_back(decoders::byte_fallback{});
  parts.decoders.emplace_back(
      decoders::replace{pattern::literal(std::string(space)), false, std::string(space), " "});
  parts.decoders.emplace_back(decoders::fuse{});
  if (prefix) parts.decoders.emplace_back(decoders::strip{" ", 1, 0});
  return read_named_tokens(v, true, parts);
}

}  // namespace

result<tokenizer> tokenizer::from_gguf(const gguf_vocab& v) {
  auto parts = std::make_unique<tokenizer_parts>();
  auto done = read_tokens(v, *parts);
  if (done) {
    if (v.model == "gpt2")
      done = read_byte_level(v, *parts);
    else if (v.model == "llama")
      done = read_sentencepiece(v, *parts);
    else
      done = fail("tokenizer.ggml.model {} is not supported; gpt2 and llama are", v.model);
  }
  if (!done) return fail("tokenizer: {}", done.why().text);
  parts->spell_middles();
  return tokenizer(std::move(parts));
}

}  // namespace lethe
