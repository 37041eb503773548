#include "runtime/model/convert_vocab.hpp"

#include <simdjson.h>

#include <algorithm>
#include <unordered_map>

#include "runtime/base/json_numbers.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/model/convert_split.hpp"

namespace lethe {

namespace dom = simdjson::dom;
namespace fs = std::filesystem;

namespace {

enum token_type : int32_t { normal = 1, unknown, control, user, unused, byte };

struct hf_vocab {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;
  std::unordered_map<std::string_view, uint32_t> ids;  // views `tokens`
};

result<dom::object> parse_file(dom::parser& parser, const fs::path& path) {
  auto text = read_text(path, limits::json_file_bytes_max);
  if (!text) return text.why();
  dom::object object;
  if (auto failed = parser.parse(widen_integers(*text)).get(object))
    return fail("{}: not a JSON object: {}", path.string(), simdjson::error_message(failed));
  return object;
}

bool put_token(hf_vocab& v, uint64_t id, std::string_view text, int32_t type) {
  if (id >= v.tokens.size()) return false;
  v.tokens[id] = text;
  v.types[id] = type;
  return true;
}

bool is_byte_name(std::string_view t) {
  return t.size() == 6 && t.starts_with("<0x") && t.ends_with(">");
}

/// model.vocab, then added_tokens over it; ids that nobody names become unused ones.
result<void> read_tokens(dom::object json, dom::object model, bool byte_level, hf_vocab& v) {
  dom::object vocab;
  if (model.at_key("vocab").get(vocab)) return fail("model.vocab must be an object");
  for (auto member : vocab) {
    uint64_t id = 0;
    int32_t type = !byte_level && is_byte_name(member.key) ? byte : normal;
    if (member.value.get(id) || !put_token(v, id, member.key, type))
      return fail("model.vocab: an id is not below the model's vocabulary of {}", v.tokens.size());
  }
  dom::array added;
  if (json.at_key("added_tokens").get(added)) return {};
  for (dom::element token : added) {
    uint64_t id = 0;
    std::string_view text;
    bool special = false;
    if (token.at_key("id").get(id) || token.at_key("content").get(text) ||
        token.at_key("special").get(special) || !put_token(v, id, text, special ? control : user))
      return fail(
          "added_tokens: an entry has no id below the model's vocabulary of {}, content "
          "and special",
          v.tokens.size());
  }
  return {};
}

/// Ids that nobody names, such as padding rows of the embedding; and the map back from texts.
void fill_gaps(hf_vocab& v) {
  for (size_t i = 0; i < v.tokens.size(); ++i) {
    if (v.types[i] == 0) v.tokens[i] = fmt::format("[PAD{}]", i), v.types[i] = unused;
    v.ids.emplace(v.tokens[i], uint32_t(i));
  }
}

result<void> read_merges(dom::object model, hf_vocab& v) {
  dom::array merges;
  if (model.at_key("merges").get(merges)) return fail("model.merges is missing");
  for (dom::element merge : merges) {
    std::string_view text, right;
    dom::array pair;
    if (!merge.get(text)) {
      v.merges.emplace_back(text);
    } else if (!merge.get(pair) && pair.size() == 2 && !pair.at(0).get(text) &&
               !pair.at(1).get(right)) {
      v.merges.push_back(fmt::format("{} {}", text, right));
    } else {
      return fail("model.merges must hold texts or pairs of texts");
    }
  }
  return {};
}

/// SentencePiece merges the pair whose piece scores best; tokenizer.json has kept only the order of
/// merges. A piece that comes about by an earlier merge gets the higher score.
void score_by_merges(hf_vocab& v) {
  v.scores.assign(v.tokens.size(), 0);
  std::vector<bool> scored(v.tokens.size());
  std::string joined;
  float next = -1;
  for (const auto& merge : v.merges) {
    size_t space = merge.find(' ', 1);
    if (space == std::string::npos) continue;
    joined.assign(merge, 0, space).append(merge, space + 1);
    auto at = v.ids.find(joined);
    if (at == v.ids.end() || scored[at->second]) continue;
    scored[at->second] = true;
    v.scores[at->second] = next--;
  }
  for (size_t i = 0; i < v.scores.size(); ++i)
    if (!scored[i] && v.types[i] == normal) v.scores[i] = next--;
}

/// A special token in tokenizer_config.json: a text, or an object with `content`.
std::optional<uint32_t> named_id(dom::object config, const char* key, const hf_vocab& v) {
  dom::element value;
  std::string_view text;
  if (config.at_key(key).get(value)) return std::nullopt;
  if (value.get(text) && value.at_key("content").get(text)) return std::nullopt;
  auto at = v.ids.find(text);
  return at == v.ids.end() ? std::nullopt : std::optional(at->second);
}

void add_id(gguf_header& header, const char* name, std::optional<uint32_t> id) {
  if (id) header.add(fmt::format("tokenizer.ggml.{}_token_id", name), *id);
}

/// The ids that end a text: GGUF has three names, the rest goes under a key of ours.
void add_ends(gguf_header& header, std::optional<uint32_t> eos, std::vector<uint32_t> ends) {
  if (!eos && !ends.empty()) eos = ends[0];
  ends.erase(std::remove(ends.begin(), ends.end(), eos), ends.end());
  add_id(header, "eos", eos);
  if (!ends.empty()) add_id(header, "eot", ends[0]);
  if (ends.size() > 1) add_id(header, "eom", ends[1]);
  if (ends.size() > 2)
    header.add("lethe.eos_token_ids", std::vector<int32_t>(ends.begin(), ends.end()));
}

/// Whether the post-processor's template begins (or ends) with a token.
struct template_ends {
  bool any = false, first = false, last = false;
};

template_ends read_template(dom::object processor) {
  std::string_view type;
  template_ends found;
  if (processor.at_key("type").get(type)) return found;
  dom::array steps;
  if (type == "Sequence" && !processor.at_key("processors").get(steps)) {
    dom::object step;
    for (dom::element e : steps)
      if (!e.get(step))
        if (auto inner = read_template(step); inner.any) found = inner;
    return found;
  }
  if (type != "TemplateProcessing" || processor.at_key("single").get(steps)) return found;
  auto is_token = [&](size_t i) {
    return steps.at(i).at_key("SpecialToken").error() == simdjson::SUCCESS;
  };
  found.any = true;
  found.first = steps.size() > 0 && is_token(0);
  found.last = steps.size() > 1 && is_token(steps.size() - 1);
  return found;
}

/// The template decides, except in the classes that rebuild it from the configuration's flags.
bool adds(dom::object config, const char* key, bool by_template, bool has_template) {
  bool flag = false;
  if (config.at_key(key).get(flag)) return by_template;
  std::string_view name;
  bool rebuilds = !config.at_key("tokenizer_class").get(name) &&
                  (name.starts_with("Llama") || name.starts_with("CodeLlama"));
  return rebuilds || !has_template ? flag : by_template || flag;
}

result<std::string> chat_template_of(const fs::path& folder, dom::object config) {
  std::error_code ignored;
  if (fs::exists(folder / "chat_template.jinja", ignored))
    return read_text(folder / "chat_template.jinja", limits::template_bytes_max);
  dom::element value;
  std::string_view text, name;
  if (config.at_key("chat_template").get(value)) return std::string();
  if (!value.get(text)) return std::string(text);
  dom::array several;
  if (value.get(several)) return std::string();
  for (dom::element e : several)
    if (!e.at_key("name").get(name) && name == "default" && !e.at_key("template").get(text))
      return std::string(text);
  return std::string();
}

bool prepends_space(dom::object json) {
  // Either spelling of "put a space before the text".
  auto text = simdjson::minify(json);
  return text.find(R"("Prepend")") != std::string::npos ||
         text.find(R"("prepend_scheme":"first")") != std::string::npos ||
         text.find(R"("prepend_scheme":"always")") != std::string::npos;
}

result<hf_vocab> read_vocabulary(dom::object json, uint32_t size, bool byte_level) {
  dom::object model;
  std::string_view type;
  if (json.at_key("model").get(model)) return fail("model is missing");
  // Old files leave the type out; a vocabulary with merges is BPE.
  if (model.at_key("type").get(type)) type = "BPE";
  if (type != "BPE")
    return fail("model.type \"{}\" cannot be written to GGUF; supported: BPE", type);
  hf_vocab v;
  v.tokens.resize(size);
  v.types.resize(size);
  if (auto ok = read_tokens(json, model, byte_level, v); !ok) return ok.why();
  std::string_view unk;
  if (auto ok = read_merges(model, v); !ok) return ok.why();
  fill_gaps(v);
  if (!byte_level && !model.at_key("unk_token").get(unk))
    if (auto at = v.ids.find(unk); at != v.ids.end()) v.types[at->second] = unknown;
  if (!byte_level) score_by_merges(v);
  return v;
}

result<void> add_words(dom::object json, bool byte_level, const hf_vocab& v, gguf_header& header) {
  header.add("tokenizer.ggml.model", byte_level ? "gpt2" : "llama");
  if (byte_level) {
    auto pre = split_name(json);
    if (!pre) return pre.why();
    header.add("tokenizer.ggml.pre", *pre);
  } else {
    header.add("tokenizer.ggml.pre", "default");
  }
  header.add("tokenizer.ggml.tokens", v.tokens);
  if (!byte_level) header.add("tokenizer.ggml.scores", v.scores);
  header.add("tokenizer.ggml.token_type", v.types);
  if (byte_level)
    header.add("tokenizer.ggml.merges", v.merges);
  else
    header.add("tokenizer.ggml.add_space_prefix", prepends_space(json));
  return {};
}

void add_named(dom::object json, dom::object config, const hf_vocab& v,
               const generation_defaults& defaults, gguf_header& header) {
  auto bos = named_id(config, "bos_token", v);
  add_id(header, "bos", bos ? bos : defaults.bos_id);
  add_ends(header, named_id(config, "eos_token", v), defaults.eos_ids);
  add_id(header, "unknown", named_id(config, "unk_token", v));
  add_id(header, "padding", named_id(config, "pad_token", v));
  dom::object processor;
  template_ends ends;
  if (!json.at_key("post_processor").get(processor)) ends = read_template(processor);
  header.add("tokenizer.ggml.add_bos_token", adds(config, "add_bos_token", ends.first, ends.any));
  header.add("tokenizer.ggml.add_eos_token", adds(config, "add_eos_token", ends.last, ends.any));
}

}  // namespace

result<void> add_vocab(const fs::path& folder, const model_shape& shape,
                       const generation_defaults& defaults, gguf_header& header) {
  dom::parser parser, config_parser;
  fs::path path = folder / "tokenizer.json", config_path = folder / "tokenizer_config.json";
  auto json = parse_file(parser, path);
  if (!json) return json.why();
  std::error_code ignored;
  dom::object config;
  if (fs::exists(config_path, ignored)) {
    auto parsed = parse_file(config_parser, config_path);
    if (!parsed) return parsed.why();
    config = *parsed;
  } else {
    check(!config_parser.parse(std::string_view("{}")).get(config));
  }
  bool byte_level = is_byte_level(*json);
  auto vocab = read_vocabulary(*json, shape.vocab, byte_level);
  if (!vocab) return fail("{}: {}", path.string(), vocab.why().text);
  if (auto ok = add_words(*json, byte_level, *vocab, header); !ok)
    return fail("{}: {}", path.string(), ok.why().text);
  add_named(*json, config, *vocab, defaults, header);
  auto source = chat_template_of(folder, config);
  if (!source) return source.why();
  if (!source->empty()) header.add("tokenizer.chat_template", *source);
  return {};
}

}  // namespace lethe
