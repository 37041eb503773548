#include "runtime/model/gguf_vocab_read.hpp"

#include <algorithm>

#include "runtime/base/limits.hpp"

namespace lethe {

namespace {

template <class T>
result<void> take(T& into, result<T> from) {
  if (!from) return from.why();
  into = *std::move(from);
  return {};
}

result<void> take(std::string_view& into, result<std::optional<std::string_view>> from) {
  if (!from) return from.why();
  into = from->value_or(std::string_view());
  return {};
}

result<void> read_lists(const gguf_file& file, gguf_vocab& vocab) {
  if (auto ok = take(vocab.tokens, file.get_texts("tokenizer.ggml.tokens")); !ok) return ok;
  if (auto ok = take(vocab.scores, file.get_floats("tokenizer.ggml.scores")); !ok) return ok;
  if (auto ok = take(vocab.types, file.get_ints("tokenizer.ggml.token_type")); !ok) return ok;
  if (auto ok = take(vocab.merges, file.get_texts("tokenizer.ggml.merges")); !ok) return ok;
  return take(vocab.precompiled_charsmap, file.get_octets("tokenizer.ggml.precompiled_charsmap"));
}

result<void> read_texts(const gguf_file& file, gguf_vocab& vocab) {
  if (auto ok = take(vocab.model, file.get_text("tokenizer.ggml.model")); !ok) return ok;
  if (auto ok = take(vocab.pre, file.get_text("tokenizer.ggml.pre")); !ok) return ok;
  return take(vocab.chat_template, file.get_text("tokenizer.chat_template"));
}

result<void> read_flags(const gguf_file& file, gguf_vocab& v) {
  if (auto ok = take(v.add_bos, file.get_bool("tokenizer.ggml.add_bos_token")); !ok) return ok;
  if (auto ok = take(v.add_eos, file.get_bool("tokenizer.ggml.add_eos_token")); !ok) return ok;
  if (auto ok = take(v.add_space_prefix, file.get_bool("tokenizer.ggml.add_space_prefix")); !ok)
    return ok;
  return take(v.remove_extra_whitespaces, file.get_bool("tokenizer.ggml.remove_extra_whitespaces"));
}

result<void> read_ids(const gguf_file& file, gguf_vocab& v) {
  struct id_key {
    const char* key;
    std::optional<uint32_t>& into;
  };
  const id_key ids[] = {{"bos", v.bos}, {"eos", v.eos},     {"eot", v.eot},
                        {"eom", v.eom}, {"unknown", v.unk}, {"padding", v.pad}};
  for (const auto& id : ids) {
    auto key = fmt::format("tokenizer.ggml.{}_token_id", id.key);
    if (auto ok = take(id.into, file.get_u32(key)); !ok) return ok;
    // Some converters write -1 as 2^32-1 for "none".
    if (id.into == UINT32_MAX) id.into.reset();
    if (id.into && *id.into >= v.tokens.size())
      return fail("{}: {} is {}, but there are {} tokens", file.name(), key, *id.into,
                  v.tokens.size());
  }
  return {};
}

/// What ends an answer: the ids that the file names, and control tokens that are spelled as the
/// known families end their turns, because most files name only one of several.
void collect_ends(gguf_vocab& v) {
  constexpr int32_t control = 3;
  constexpr std::string_view spellings[] = {"<|eot_id|>",   "<|eom_id|>",    "<|im_end|>",
                                            "<|end|>",      "<|endoftext|>", "<|end_of_text|>",
                                            "<end_of_turn>"};
  for (auto id : {v.eos, v.eot, v.eom})
    if (id) v.eog.push_back(*id);
  for (uint32_t i = 0; i < v.types.size(); ++i)
    if (v.types[i] == control &&
        std::find(std::begin(spellings), std::end(spellings), v.tokens[i]) != std::end(spellings))
      v.eog.push_back(i);
  std::sort(v.eog.begin(), v.eog.end());
  v.eog.erase(std::unique(v.eog.begin(), v.eog.end()), v.eog.end());
}

result<void> check_lengths(const gguf_file& file, const gguf_vocab& v) {
  if (v.model.empty() || v.tokens.empty())
    return fail("{}: has no vocabulary (tokenizer.ggml.model, tokenizer.ggml.tokens)", file.name());
  if (v.tokens.size() > limits::vocab_max)
    return fail("{}: {} tokens; at most {} are supported", file.name(), v.tokens.size(),
                limits::vocab_max);
  if (!v.scores.empty() && v.scores.size() != v.tokens.size())
    return fail("{}: {} tokens, but {} in tokenizer.ggml.scores", file.name(), v.tokens.size(),
                v.scores.size());
  if (!v.types.empty() && v.types.size() != v.tokens.size())
    return fail("{}: {} tokens, but {} in tokenizer.ggml.token_type", file.name(), v.tokens.size(),
                v.types.size());
  return {};
}

}  // namespace

result<gguf_vocab> read_vocab(const gguf_file& file) {
  gguf_vocab vocab;
  if (auto ok = read_texts(file, vocab); !ok) return ok.why();
  if (auto ok = read_lists(file, vocab); !ok) return ok.why();
  if (auto ok = check_lengths(file, vocab); !ok) return ok.why();
  if (auto ok = read_flags(file, vocab); !ok) return ok.why();
  if (auto ok = read_ids(file, vocab); !ok) return ok.why();
  collect_ends(vocab);
  return vocab;
}

}  // namespace lethe
