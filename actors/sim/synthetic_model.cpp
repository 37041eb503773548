#include "actors/sim/synthetic_model.hpp"

#include <fmt/format.h>

#include "runtime/base/temporary_folder.hpp"

namespace lethe::sim {

namespace {

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr uint32_t hidden = 32, vocab = letters.size() + 1;  // and the end of an answer

std::string config_json() {
  return fmt::format(
      R"({{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_act":"silu",)"
      R"("rms_norm_eps":1e-5,"rope_theta":10000.0,"max_position_embeddings":16777216,)"
      R"("tie_word_embeddings":true,"head_dim":16,"hidden_size":{0},"num_hidden_layers":1,)"
      R"("num_attention_heads":2,"num_key_value_heads":2,"intermediate_size":{0},)"
      R"("vocab_size":{1},"torch_dtype":"float16","eos_token_id":{2}}})",
      hidden, vocab, vocab - 1);
}

/// All weights are zero.
std::string safetensors() {
  std::string header, layer = "model.layers.0.";
  size_t bytes = 0;
  auto add = [&](const std::string& name, std::vector<uint32_t> shape) {
    size_t size = 2;
    for (uint32_t n : shape) size *= n;
    header +=
        fmt::format(R"({}"{}":{{"dtype":"F16","shape":[{}],"data_offsets":[{},{}]}})",
                    header.empty() ? "{" : ",", name, fmt::join(shape, ","), bytes, bytes + size);
    bytes += size;
  };
  add("model.embed_tokens.weight", {vocab, hidden});
  add("model.norm.weight", {hidden});
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
    add(layer + norm + ".weight", {hidden});
  for (const char* part : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                           "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    add(layer + part + ".weight", {hidden, hidden});
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file;
  for (uint64_t n = header.size(), i = 0; i < 8; ++i) file += char(n >> 8 * i & 0xff);
  return file + header + std::string(bytes, '\0');
}

std::string tokenizer_json() {
  std::string words;
  for (size_t i = 0; i < letters.size(); ++i)
    words += fmt::format(R"({}"{}":{})", i ? "," : "", letters[i], i);
  return fmt::format(
      R"({{"version":"1.0","added_tokens":[{{"id":{0},"content":"<|eos|>","single_word":false,)"
      R"("lstrip":false,"rstrip":false,"normalized":false,"special":true}}],"normalizer":null,)"
      R"("pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false,"use_regex":true}},)"
      R"("decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE","vocab":{{{1}}},"merges":[]}}}})",
      vocab - 1, words);
}

}  // namespace

result<std::shared_ptr<const served_model>> synthetic_model() {
  auto folder = temporary_folder::make("lethe-replay");
  if (!folder) return folder.why();
  for (auto [name, text] :
       {std::pair("config.json", config_json()), std::pair("model.safetensors", safetensors()),
        std::pair("tokenizer.json", tokenizer_json())})
    if (auto written = folder->write(name, text); !written) return written.why();
  // What is mapped stays when the folder goes.
  return served_model::open({.path = folder->path(), .name = "synthetic", .threads = 1});
}

}  // namespace lethe::sim
