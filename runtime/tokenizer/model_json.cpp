#include "runtime/tokenizer/model_json.hpp"

#include "runtime/base/limits.hpp"

namespace lethe::json {
namespace {

using control_test = std::function<bool(std::string_view)>;
constexpr size_t word_characters_max = 1000;  // WordPiece takes their square in time

vocabulary::kind kind_of(std::string_view text, const control_test& is_control) {
  return is_control(text) ? vocabulary::kind::control : vocabulary::kind::word;
}

// {"text": id, ...}
result<void> read_vocab(object o, vocabulary& tokens, const control_test& is_control) {
  auto e = find(o, "vocab");
  if (!e) return fail("\"vocab\" is missing");
  auto entries = as_object(*e, "vocab");
  if (!entries) return entries.why();
  tokens.reserve(entries->size(), entries->size() * 8);
  for (auto [text, value] : *entries) {
    uint64_t id = 0;
    if (value.get(id) || id > UINT32_MAX) return fail("\"vocab\" has an id that is no number");
    auto added = tokens.add(uint32_t(id), text, kind_of(text, is_control));
    if (!added) return added;
  }
  return {};
}

// [["text", score], ...]; an id is a place in the array.
result<std::vector<double>> read_scored_vocab(object o, vocabulary& tokens,
                                              const control_test& is_control) {
  auto entries = list(o, "vocab");
  if (!entries) return entries.why();
  std::vector<double> scores;
  for (element e : *entries) {
    auto id = uint32_t(scores.size());
    array both;
    std::string_view text;
    double score = 0;
    if (e.get(both) || both.size() != 2 || both.at(0).get(text) || both.at(1).get(score))
      return fail("\"vocab\" entry {} is not [text, score]", id);
    auto added = tokens.add(id, text, kind_of(text, is_control));
    if (!added) return added.why();
    scores.push_back(score);
  }
  return scores;
}

// "a b", or ["a", "b"] where a token may hold a space.
result<bpe::text_pair> read_merge(element e, size_t rank) {
  std::string_view text;
  array both;
  bpe::text_pair out;
  if (!e.get(text)) {
    size_t space = text.find(' ');
    if (space != text.npos && text.find(' ', space + 1) == text.npos)
      return bpe::text_pair{text.substr(0, space), text.substr(space + 1)};
  } else if (!e.get(both) && both.size() == 2 && !both.at(0).get(out.left) &&
             !both.at(1).get(out.right)) {
    return out;
  }
  return fail("merge {} is not two tokens", rank);
}

result<std::vector<bpe::text_pair>> read_merges(object o) {
  auto entries = list(o, "merges");
  if (!entries) return entries.why();
  std::vector<bpe::text_pair> merges;
  for (element e : *entries) {
    auto one = read_merge(e, merges.size());
    if (!one) return one.why();
    merges.push_back(*one);
  }
  return merges;
}

result<std::optional<uint32_t>> read_unk(object o, const vocabulary& tokens) {
  auto text = json::text(o, "unk_token", "");
  if (!text) return text.why();
  if (!find(o, "unk_token")) return std::optional<uint32_t>();
  auto id = tokens.id_of(*text);
  if (!id) return fail("unk_token is not in the vocabulary");
  return id;
}

result<bpe_options> read_bpe_options(object o, const vocabulary& tokens) {
  auto unk = read_unk(o, tokens);
  auto fuse = flag(o, "fuse_unk", false), bytes = flag(o, "byte_fallback", false);
  auto ignore = flag(o, "ignore_merges", false);
  auto prefix = text(o, "continuing_subword_prefix", "");
  auto suffix = text(o, "end_of_word_suffix", "");
  if (!unk) return unk.why();
  for (auto* one : {&fuse, &bytes, &ignore})
    if (!*one) return one->why();
  if (!prefix) return prefix.why();
  if (!suffix) return suffix.why();
  double dropout = 0;
  if (auto e = find(o, "dropout"); e && (e->get(dropout) || dropout != 0))
    return fail("\"dropout\" is not supported: it makes ids random");
  return bpe_options{*unk, *fuse, *bytes, *ignore, std::string(*prefix), std::string(*suffix)};
}

result<void> read_bpe(object o, tokenizer_parts& parts, const control_test& is_control) {
  auto vocab = read_vocab(o, parts.tokens, is_control);
  if (!vocab) return vocab;
  auto options = read_bpe_options(o, parts.tokens);
  auto merges = read_merges(o);
  if (!options) return options.why();
  if (!merges) return merges.why();
  parts.unk = options->unk;
  auto model = bpe::make(parts.tokens, *std::move(options), *merges);
  if (!model) return model.why();
  parts.model.emplace<bpe>(*std::move(model));
  return {};
}

result<void> read_unigram(object o, tokenizer_parts& parts, const control_test& is_control) {
  auto scores = read_scored_vocab(o, parts.tokens, is_control);
  auto bytes = flag(o, "byte_fallback", false);
  if (!scores) return scores.why();
  if (!bytes) return bytes.why();
  if (find(o, "unk_id")) {
    auto unk = number(o, "unk_id");
    if (!unk) return unk.why();
    parts.unk = *unk;
  }
  auto model = unigram::make(parts.tokens, *std::move(scores), parts.unk, *bytes);
  if (!model) return model.why();
  parts.model.emplace<unigram>(*std::move(model));
  return {};
}

result<void> read_wordpiece(object o, tokenizer_parts& parts, const control_test& is_control,
                            bool whole_words) {
  auto vocab = read_vocab(o, parts.tokens, is_control);
  if (!vocab) return vocab;
  auto unk = read_unk(o, parts.tokens);
  auto prefix = text(o, "continuing_subword_prefix", "##");
  auto most = number(o, "max_input_chars_per_word", 100);
  if (!unk) return unk.why();
  if (!prefix) return prefix.why();
  if (!most) return most.why();
  if (!*unk) return fail("\"unk_token\" is missing");
  if (*most > word_characters_max)
    return fail("\"max_input_chars_per_word\" is {}; at most {}", *most, word_characters_max);
  parts.unk = *unk;
  parts.model.emplace<wordpiece>(
      wordpiece{&parts.tokens, **unk, std::string(*prefix), *most, whole_words});
  return {};
}

// Files from before "type" was written.
std::string_view guessed_type(object o) {
  if (find(o, "merges")) return "BPE";
  auto vocab = find(o, "vocab");
  return vocab && vocab->is_array() ? "Unigram" : "WordPiece";
}

}  // namespace

result<void> read_model(object o, tokenizer_parts& parts, const control_test& is_control) {
  auto type = text(o, "type", guessed_type(o));
  if (!type) return fail("model: {}", type.why().text);
  result<void> done = fail("not supported; BPE, Unigram, WordPiece and WordLevel are");
  if (*type == "BPE") done = read_bpe(o, parts, is_control);
  if (*type == "Unigram") done = read_unigram(o, parts, is_control);
  if (*type == "WordPiece") done = read_wordpiece(o, parts, is_control, false);
  if (*type == "WordLevel") done = read_wordpiece(o, parts, is_control, true);
  return done ? done : fail("model {}: {}", *type, done.why().text);
}

}  // namespace lethe::json
