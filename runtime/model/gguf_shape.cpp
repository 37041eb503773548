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

std::string architecture_of(const gguf_file& file, problem_list& problems) {
  auto text = file.get_text("general.architecture");
  if (!text) return note(problems, "{}", text.why().text), std::string();
  std::string name((*text).value_or(""));
  if (name.empty())
    note(problems, "{}: metadata key general.architecture is missing", file.name());
  else if (std::find(std::begin(architectures), std::end(architectures), name) ==
           std::end(architectures))
    note(problems,
         "{}: architecture \"{}\" is not supported; supported: llama (and mistral), qwen2, qwen3",
         file.name(), printable(name));
  else
    return name;
  return {};
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

void read_rope(const gguf_fields& fields, model_shape& s) {
  rope_shape& r = s.rope;
  r.theta = fields.f32("rope.freq_base").value_or(10000);
  r.rotary = fields.u32("rope.dimension_count").value_or(s.head_dim);
  r.scaling = scaling_of(fields);
  read_factors(fields, r);
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
void read_window_pattern(const gguf_fields& fields, model_shape& s) {
  auto key = fields.key("attention.sliding_window_pattern");
  const gguf_value* pattern = fields.file().find(key);
  if (!pattern) return;
  if (pattern->kind != gguf_kind::array || pattern->element != gguf_kind::boolean ||
      pattern->count != s.window.size())
    return note(fields.problems(), "{}: {} must be one bool per layer", fields.file().name(), key);
  for (size_t i = 0; i < s.window.size(); ++i)
    if (load_le<uint8_t>(pattern->bytes.data() + i) == 0) s.window[i] = 0;
}

}  // namespace

bool has_interleaved_rope(std::string_view architecture) { return architecture == "llama"; }

model_shape read_gguf_shape(const gguf_file& file, problem_list& problems) {
  model_shape shape;
  std::string architecture = architecture_of(file, problems);
  if (architecture.empty()) return shape;
  gguf_fields fields(file, architecture, problems);
  read_numbers(fields, shape);
  read_parts(file, architecture, shape);
  read_rope(fields, shape);
  if (shape.layers <= limits::layers_max) {
    shape.window.assign(shape.layers, fields.u32("attention.sliding_window").value_or(0));
    read_window_pattern(fields, shape);
  }
  if (has_interleaved_rope(architecture) && shape.rope.rotary != shape.head_dim)
    note(problems, "{}: {} of {} dimensions of a head turn; supported in llama files: all",
         file.name(), shape.rope.rotary, shape.head_dim);
  check_shape(shape, file.name(), problems);
  return shape;
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
