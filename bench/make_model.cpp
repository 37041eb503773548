// Writes a GGUF file of random weights in a published model's shape, for programs that measure
// speed. What it says is noise; how fast it says it is not.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <random>

#include "runtime/base/whole_file.hpp"
#include "runtime/model/dtype_name.hpp"
#include "runtime/model/gguf_write.hpp"
#include "runtime/model/quantize.hpp"

namespace lethe {
namespace {

struct dims {
  uint32_t layers, hidden, heads, kv_heads, ffn, vocab;
};
struct tensor {
  std::string name;
  uint32_t rows, cols;
  bool vector = false;
  bool finer = false;  // one of those that q4_k_m stores in six bits
};

/// Which layers' values and down projections llama.cpp's Q4_K_M stores in six bits: an eighth at
/// each end, and every third between.
bool is_finer(uint32_t layer, uint32_t layers) {
  uint32_t eighth = layers / 8;
  return layer < eighth || layer >= layers - eighth || (layer - eighth) % 3 == 2;
}

dims dims_of(const std::string& shape) {
  if (shape == "110m") return {12, 768, 12, 12, 2048, 32000};
  if (shape == "135m") return {30, 576, 9, 3, 1536, 49152};
  return {16, 2048, 32, 8, 8192, 128256};
}

std::vector<tensor> tensors_of(const dims& d) {
  uint32_t head = d.hidden / d.heads, kv = d.kv_heads * head;
  std::vector<tensor> all{{"token_embd.weight", d.vocab, d.hidden, false, true},
                          {"output_norm.weight", 1, d.hidden, true}};
  for (uint32_t l = 0; l < d.layers; ++l) {
    auto name = [l](const char* what) { return fmt::format("blk.{}.{}.weight", l, what); };
    all.push_back({name("attn_norm"), 1, d.hidden, true});
    all.push_back({name("attn_q"), d.hidden, d.hidden});
    all.push_back({name("attn_k"), kv, d.hidden});
    bool finer = is_finer(l, d.layers);
    all.push_back({name("attn_v"), kv, d.hidden, false, finer});
    all.push_back({name("attn_output"), d.hidden, d.hidden});
    all.push_back({name("ffn_norm"), 1, d.hidden, true});
    all.push_back({name("ffn_gate"), d.ffn, d.hidden});
    all.push_back({name("ffn_up"), d.ffn, d.hidden});
    all.push_back({name("ffn_down"), d.hidden, d.ffn, false, finer});
  }
  return all;
}

gguf_header header_of(const dims& d) {
  gguf_header h;
  uint32_t head = d.hidden / d.heads;
  h.add("general.architecture", "llama");
  h.add("general.name", "random weights");
  h.add("llama.block_count", d.layers);
  h.add("llama.context_length", 8192u);
  h.add("llama.embedding_length", d.hidden);
  h.add("llama.feed_forward_length", d.ffn);
  h.add("llama.attention.head_count", d.heads);
  h.add("llama.attention.head_count_kv", d.kv_heads);
  h.add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  h.add("llama.rope.freq_base", 500000.0f);
  h.add("llama.rope.dimension_count", head);
  h.add("llama.vocab_size", d.vocab);
  std::vector<std::string> words{"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types{2, 3, 3};
  for (uint32_t b = 0; b < 256; ++b)
    words.push_back(fmt::format("<0x{:02X}>", b)), types.push_back(6);
  while (words.size() < d.vocab) {
    words.push_back(fmt::format("\xe2\x96\x81w{}", words.size()));
    types.push_back(1);
  }
  std::vector<float> scores(d.vocab);
  for (uint32_t i = 0; i < d.vocab; ++i) scores[i] = -float(i);
  h.add("tokenizer.ggml.model", "llama");
  h.add("tokenizer.ggml.tokens", std::span<const std::string>(words));
  h.add("tokenizer.ggml.scores", std::span<const float>(scores));
  h.add("tokenizer.ggml.token_type", std::span<const int32_t>(types));
  h.add("tokenizer.ggml.bos_token_id", 1u);
  h.add("tokenizer.ggml.eos_token_id", 2u);
  h.add("tokenizer.chat_template", "{% for m in messages %}{{ m['content'] }}{% endfor %}");
  return h;
}

/// Sixty-four random rows, over and over: as good as all of them for speed, and much quicker made.
result<void> write_tensor(whole_file& to, const tensor& t, dtype type, std::mt19937& random) {
  std::normal_distribution<float> draw(0, 1 / std::sqrt(float(t.cols)));
  std::vector<float> values(t.cols);
  size_t row_bytes = size_t{t.cols} / block_elements(type) * block_bytes(type);
  std::vector<std::byte> rows(row_bytes * std::min(t.rows, 64u));
  for (size_t at = 0; at < rows.size(); at += row_bytes) {
    for (float& v : values) v = t.vector ? 1.0f : draw(random);
    quantize_row(type, values.data(), t.cols, rows.data() + at);
  }
  for (uint32_t r = 0; r < t.rows; ++r) {
    bytes_view row(rows.data() + r % 64 * row_bytes, row_bytes);
    if (auto ok = to.write(row); !ok) return ok;
  }
  return to.pad(gguf_alignment);
}

/// Of one dtype, or a mix of two as llama.cpp calls it.
struct file_type {
  dtype most, finer;
  dtype of(const tensor& t) const { return t.vector ? dtype::f32 : t.finer ? finer : most; }
};
result<file_type> file_type_named(const std::string& name) {
  if (name == "q4_k_m") return file_type{dtype::q4_k, dtype::q6_k};
  auto type = dtype_named(name);
  if (!type) return type.why();
  return file_type{*type, *type};
}

int make(const std::string& path, const std::string& shape, const std::string& type_name) {
  auto type = file_type_named(type_name);
  if (!type) return fmt::print(stderr, "{}\n", type.why().text), 1;
  dims d = dims_of(shape);
  auto h = header_of(d);
  auto all = tensors_of(d);
  for (const auto& t : all) h.add_tensor(t.name, type->of(t), t.rows, t.cols);
  auto file = whole_file::create(path);
  if (!file) return fmt::print(stderr, "{}\n", file.why().text), 1;
  auto done = file->write(as_bytes(h.bytes()));
  std::mt19937 random(7);
  for (const auto& t : all)
    if (done) done = write_tensor(*file, t, type->of(t), random);
  if (done) done = file->finish();
  if (!done) return fmt::print(stderr, "{}\n", done.why().text), 1;
  return 0;
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  CLI::App app{"Writes a GGUF file of random weights", "make_model"};
  std::string path, shape = "1b", type = "q8_0";
  app.add_option("FILE", path)->required();
  app.add_option("--shape", shape, "1b: Llama-3.2-1B's; 110m; 135m: SmolLM2-135M's")
      ->check(CLI::IsMember({"1b", "110m", "135m"}));
  app.add_option("--type", type, lethe::dtype_names() + ", or q4_k_m: q4_k and q6_k");
  CLI11_PARSE(app, argc, argv);
  return lethe::make(path, shape, type);
}
