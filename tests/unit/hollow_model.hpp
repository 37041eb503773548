#pragma once

#include <fmt/format.h>

#include <filesystem>

#include "tests/unit/model_files.hpp"

namespace lethe::testing {

/// A model of some 160 MiB that no disk has to hold: its numbers are a file's hole.
inline std::filesystem::path write_hollow(const test::temporary_folder& to) {
  constexpr uint32_t hidden = 1024, ffn = 8192, layers = 2, vocab = 4096;
  to.write("config.json",
           fmt::format(R"({{"model_type":"llama","architectures":["LlamaForCausalLM"],
    "hidden_act":"silu","hidden_size":{},"intermediate_size":{},"num_hidden_layers":{},
    "num_attention_heads":16,"num_key_value_heads":8,"head_dim":64,"vocab_size":{},
    "max_position_embeddings":1024,"rms_norm_eps":1e-5,"rope_theta":10000.0,
    "tie_word_embeddings":true,"torch_dtype":"float16"}})",
                       hidden, ffn, layers, vocab));
  std::string header;
  uint64_t end = 0;
  auto add = [&](const std::string& name, uint32_t rows, uint32_t cols) {
    const uint64_t bytes = uint64_t{rows} * cols * 2;
    std::string shape = rows == 1 ? fmt::format("{}", cols) : fmt::format("{},{}", rows, cols);
    header += fmt::format(R"({}"{}":{{"dtype":"F16","shape":[{}],"data_offsets":[{},{}]}})",
                          header.empty() ? "{" : ",", name, shape, end, end + bytes);
    end += bytes;
  };
  add("model.embed_tokens.weight", vocab, hidden);
  for (uint32_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    add(layer + "input_layernorm.weight", 1, hidden);
    add(layer + "self_attn.q_proj.weight", 1024, hidden);
    add(layer + "self_attn.k_proj.weight", 512, hidden);
    add(layer + "self_attn.v_proj.weight", 512, hidden);
    add(layer + "self_attn.o_proj.weight", hidden, 1024);
    add(layer + "post_attention_layernorm.weight", 1, hidden);
    add(layer + "mlp.gate_proj.weight", ffn, hidden);
    add(layer + "mlp.up_proj.weight", ffn, hidden);
    add(layer + "mlp.down_proj.weight", hidden, ffn);
  }
  add("model.norm.weight", 1, hidden);
  header += "}";
  auto file = to.write("model.safetensors", test::safetensors(header, ""));
  std::filesystem::resize_file(file, 8 + header.size() + end);
  return file;
}

}  // namespace lethe::testing
