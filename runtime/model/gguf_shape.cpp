#include "runtime/model/gguf_shape.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/limits.hpp"
#include "runtime/model/byte_reader.hpp"
#include "runtime/model/gguf_fields.hpp"
#include "runtime/model/gguf_vocab_read.hpp"
#include "runtime/model/shape_check.hpp"

namespace lethe {

namespace {

/// Mistral's files say "llama", too.
constexpr std::string_view architectures[] = {"llama", "qwen2", "qwen3"};

/// Empty: the file does not say.
std::string architecture_of(const gguf_file& file, problem_list& problems) {
  auto text = file.get_text("general.architecture");
  if (!text) return note(problems, "{}", text.why().text), std::string();
  std::string name((*text).value_or(""));
  if (name.empty()) note(problems, "{}: metadata key general.architecture is missing", file.name());
  return name;
}

bool is_known(std::string_view architecture) {
  return std::find(std::begin(architectures), std::end(architectures), architecture) !=
         std::end(architectures);
}

bool has_tensor(const gguf_file& file, std::string_view name) {
  return file.find_tensor(name) != nullptr;
}

uint32_t vocab_of(const gguf_fields& fields) {
  const gguf_tensor* embed = fields.file().find_tensor("token_embd.weight");
  if (embed && embed->dims[1] <= limits::vocab_max) return uint32_t(embed->dims[1]);
  return fields.u32("vocab_size").value_or(0);
}

void read_numbers(const gguf_fields& fields, model_shape& s) {
  const gguf_file& file = fields.file();
  s.layers = fields.required("block_count");
  s.hidden = fields.required("embedding_length");
  s.ffn = fields.required("feed_forward_length");
  s.heads = fields.required("attention.head_count");
  s.kv_heads = fields.u32("attention.head_count_kv").value_or(s.heads);
  s.head_dim = fields.u32("attention.key_length").value_or(s.heads ? s.hidden / s.heads : 0);
  uint32_t values = fields.u32("attention.value_length").value_or(s.head_dim);
  if (values != s.head_dim)
    note(fields.problems(),
         "{}: keys of {} and values of {} dimensions are not supported; "
         "supported: the same for both",
         file.name(), s.head_dim, values);
  s.context_max = fields.required("context_length");
  s.vocab = vocab_of(fields);
  if (!fields.has("attention.layer_norm_rms_epsilon"))
    note(fields.problems(), "{}: metadata key {} is missing", file.name(),
         fields.key("attention.layer_norm_rms_epsilon"));
  s.norm_eps = fields.f32("attention.layer_norm_rms_epsilon").value_or(1e-5f);
  if (fields.u32("expert_count").value_or(0) > 0)
    note(fields.problems(),
         "{}: {}: mixture of experts is not supported; supported: dense feed-forward", file.name(),
         fields.key("expert_count"));
}

/// What the file has tensors for, the model has.
void read_parts(const gguf_file& file, std::string_view architecture, model_shape& s) {
  s.family = architecture;
  s.qkv_bias = architecture == "qwen2" || has_tensor(file, "blk.0.attn_q.bias");
  s.o_bias = has_tensor(file, "blk.0.attn_output.bias");
  s.mlp_bias = has_tensor(file, "blk.0.ffn_gate.bias");
  s.qk_norm = architecture == "qwen3";
  s.tied = !has_tensor(file, "output.weight");
}

rope_scaling scaling_of(const gguf_fields& fields) {
  auto type = fields.text("rope.scaling.type");
  if (!type) {
    // Older files have this key alone.
    return fields.has("rope.scale_linear") ? rope_scaling::linear : rope_scaling::none;
  }
  if (*type == "none") return rope_scaling::none;
  if (*type == "linear") return rope_scaling::linear;
  if (*type == "yarn") return rope_scaling::yarn;
  note(fields.problems(),
       "{}: {} \"{}\" is not supported; supported: none, linear, yarn (and llama3 as the tensor "
       "rope_freqs.weight)",
       fields.file().name(), fields.key("rope.scaling.type"), printable(*type));
  return rope_scaling::none;
}

/// yarn's magnitude is the file's factor times what follows from the stretch.
double attention_factor_of(const gguf_fields& fields, double stretch) {
  auto given = fields.f32("rope.scaling.yarn_attn_factor");
  if (!given) given = fields.f32("rope.scaling.attn_factor");
  if (!given || *given == 1) return 0;
  return *given * (stretch <= 1 ? 1 : 0.1 * std::log(stretch) + 1);
}

void read_factors(const gguf_fields& fields, rope_shape& r) {
  const gguf_tensor* tensor = fields.file().find_tensor("rope_freqs.weight");
  if (!tensor) return;
  if (tensor->type != dtype::f32 || tensor->data.size() / 4 > limits::hidden_max)
    return note(fields.problems(), "{}: tensor rope_freqs.weight must be f32, one per pair",
                fields.file().name());
  r.factors.resize(tensor->data.size() / 4);
  std::memcpy(r.factors.data(), tensor->data.data(), tensor->data.size());
}

/// How far yarn is mixed in is a number in GGUF; a model has all of it (or says nothing).
void refuse_foreign_yarn(const gguf_fields& fields, const rope_shape& r) {
  auto mixed = fields.f32("rope.scaling.yarn_ext_factor");
  bool whole = !mixed || *mixed < 0 || *mixed == (r.scaling == rope_scaling::yarn ? 1 : 0);
  if (!whole)
    note(fields.problems(), "{}: {} is {}; supported: 1 with yarn", fields.file().name(),
         fields.key("rope.scaling.yarn_ext_factor"), *mixed);
  auto magnitude = fields.f32("rope.scaling.attn_factor");
  if (r.scaling != rope_scaling::yarn && magnitude && *magnitude != 1)
    note(fields.problems(), "{}: {} is {}; supported: only with yarn", fields.file().name(),
         fields.key("rope.scaling.attn_factor"), *magnitude);
}

void read_rope(const gguf_fields& fields, model_shape& s) {
  rope_shape& r = s.rope;
  r.theta = fields.f32("rope.freq_base").value_or(10000);
  r.rotary = fields.u32("rope.dimension_count").value_or(s.head_dim);
  r.scaling = scaling_of(fields);
  read_factors(fields, r);
  refuse_foreign_yarn(fields, r);
  if (r.scaling == rope_scaling::none) return;
  auto factor = fields.f32("rope.scaling.factor");
  if (!factor) factor = fields.f32("rope.scale_linear");
  r.factor = factor.value_or(1);
  // Files write 0 where the factor is none.
  if (r.factor == 0) r.factor = 1;
  if (r.scaling != rope_scaling::yarn) return;
  r.original_context = fields.u32("rope.scaling.original_context_length").value_or(s.context_max);
  r.beta_fast = fields.f32("rope.scaling.yarn_beta_fast").value_or(32);
  r.beta_slow = fields.f32("rope.scaling.yarn_beta_slow").value_or(1);
  r.attention_factor = attention_factor_of(fields, r.factor);
}

/// One flag per layer, where only some have the window.
void read_windows(const gguf_fields& fields, model_shape& s) {
  if (s.layers > limits::layers_max) return;
  s.window.assign(s.layers, fields.u32("attention.sliding_window").value_or(0));
  auto key = fields.key("attention.sliding_window_pattern");
  const gguf_value* pattern = fields.file().find(key);
  if (!pattern) return;
  if (pattern->kind != gguf_kind::array || pattern->element != gguf_kind::boolean ||
      pattern->count != s.window.size())
    return note(fields.problems(), "{}: {} must be one bool per layer", fields.file().name(), key);
  for (size_t i = 0; i < s.window.size(); ++i)
    if (load_le<uint8_t>(pattern->bytes.data() + i) == 0) s.window[i] = 0;
}

/// What other architectures scale, cap or leave out: these three must not.
void refuse_foreign_arithmetic(const gguf_fields& fields) {
  struct neutral_key {
    const char* name;
    float neutral;
  };
  for (auto key : {neutral_key{"logit_scale", 1},
                   {"embedding_scale", 1},
                   {"residual_scale", 1},
                   {"attention.scale", 0},
                   {"attn_logit_softcapping", 0},
                   {"final_logit_softcapping", 0},
                   {"attention.clamp_kqv", 0},
                   {"attention.max_alibi_bias", 0}})
    if (fields.f32(key.name).value_or(key.neutral) != key.neutral)
      note(fields.problems(), "{}: {} is not supported", fields.file().name(),
           fields.key(key.name));
  if (!fields.boolean("attention.causal").value_or(true))
    note(fields.problems(), "{}: {} false is not supported; supported: models that generate",
         fields.file().name(), fields.key("attention.causal"));
}

/// Fewer tokens than rows are padding; more could not be looked up.
void check_vocabulary(const gguf_fields& fields, const model_shape& s) {
  const gguf_value* tokens = fields.file().find("tokenizer.ggml.tokens");
  if (tokens && tokens->kind == gguf_kind::array && tokens->count > s.vocab)
    note(fields.problems(), "{}: tokenizer.ggml.tokens has {} tokens for an embedding of {} rows",
         fields.file().name(), tokens->count, s.vocab);
}

/// GGUF is also how parts of models are stored.
void refuse_other_files(const gguf_file& file, problem_list& problems) {
  auto type = file.get_text("general.type");
  if (!type) return note(problems, "{}", type.why().text);
  if (type->value_or("model") != "model")
    note(problems, "{}: general.type \"{}\" is not supported; supported: model", file.name(),
         printable(**type));
}

}  // namespace

bool has_interleaved_rope(std::string_view architecture) { return architecture == "llama"; }

gguf_numbers read_gguf_shape(const gguf_file& file, problem_list& problems) {
  gguf_numbers made;
  model_shape& shape = made.shape;
  refuse_other_files(file, problems);
  std::string architecture = architecture_of(file, problems);
  if (architecture.empty()) return made;
  made.known_family = is_known(architecture);
  // Of an unknown one the numbers are for display.
  problem_list unheard;
  gguf_fields fields(file, architecture, made.known_family ? problems : unheard);
  read_numbers(fields, shape);
  read_parts(file, architecture, shape);
  if (!made.known_family) {
    shape.family = printable(architecture);
    note(problems,
         "{}: architecture \"{}\" is not supported; supported: llama (and mistral), qwen2, qwen3",
         file.name(), shape.family);
    return made;
  }
  refuse_foreign_arithmetic(fields);
  check_vocabulary(fields, shape);
  read_rope(fields, shape);
  read_windows(fields, shape);
  if (has_interleaved_rope(architecture) && shape.rope.rotary != shape.head_dim)
    note(problems, "{}: {} of {} dimensions of a head turn; supported in llama files: all",
         file.name(), shape.rope.rotary, shape.head_dim);
  check_shape(shape, file.name(), problems);
  return made;
}

generation_defaults read_gguf_defaults(const gguf_file& file, problem_list& problems) {
  generation_defaults made;
  // A file without a vocabulary still runs on ids.
  if (file.has("tokenizer.ggml.tokens")) {
    auto vocab = read_vocab(file);
    if (!vocab) return note(problems, "{}", vocab.why().text), made;
    made.bos_id = vocab->bos;
    made.pad_id = vocab->pad;
    made.eos_ids = vocab->eog;
  }
  auto more = file.get_ints("lethe.eos_token_ids");
  if (!more) return note(problems, "{}", more.why().text), made;
  for (int32_t id : *more)
    if (id >= 0 && uint32_t(id) < limits::vocab_max) made.eos_ids.push_back(uint32_t(id));
  gguf_fields sampling(file, "general.sampling", problems);
  made.temperature = sampling.f32("temp");
  made.top_k = sampling.u32("top_k");
  made.top_p = sampling.f32("top_p");
  made.min_p = sampling.f32("min_p");
  made.repetition_penalty = sampling.f32("penalty_repeat");
  check_defaults(made, file.name(), problems);
  return made;
}

}  // namespace lethe
