#include "runtime/model/checkpoint.hpp"

#include <algorithm>
#include <set>

#include "model_files.hpp"
#include "runtime/model/quantize.hpp"
#include "runtime/model/shape_check.hpp"

namespace lethe {
namespace {

using test::temporary_folder;

constexpr const char* config = R"({"model_type":"llama","hidden_size":8,"num_hidden_layers":1,
  "num_attention_heads":2,"num_key_value_heads":1,"vocab_size":4,"intermediate_size":8,
  "max_position_embeddings":16,"eos_token_id":3})";

struct written_tensor {
  std::string name;
  std::vector<uint32_t> dims;
};

/// What the config above asks for.
std::vector<written_tensor> tensors() {
  std::string l = "model.layers.0.";
  return {{"model.embed_tokens.weight", {4, 8}},
          {l + "input_layernorm.weight", {8}},
          {l + "self_attn.q_proj.weight", {8, 8}},
          {l + "self_attn.k_proj.weight", {4, 8}},
          {l + "self_attn.v_proj.weight", {4, 8}},
          {l + "self_attn.o_proj.weight", {8, 8}},
          {l + "post_attention_layernorm.weight", {8}},
          {l + "mlp.gate_proj.weight", {8, 8}},
          {l + "mlp.up_proj.weight", {8, 8}},
          {l + "mlp.down_proj.weight", {8, 8}},
          {"model.norm.weight", {8}},
          {"lm_head.weight", {4, 8}}};
}

std::string file_of(const std::vector<written_tensor>& all, const char* type = "F16") {
  std::string header = "{";
  size_t at = 0;
  for (const auto& t : all) {
    size_t size = 2;
    std::string shape;
    for (uint32_t d : t.dims) size *= d, shape += (shape.empty() ? "" : ",") + std::to_string(d);
    header += (at ? ",\"" : "\"") + t.name + R"(":{"dtype":")" + type + R"(","shape":[)" + shape +
              R"(],"data_offsets":[)" + std::to_string(at) + "," + std::to_string(at + size) + "]}";
    at += size;
  }
  return test::safetensors(header + "}", std::string(at, '\0'));
}

/// Opens a folder of these tensors.
result<checkpoint> open_with(const std::vector<written_tensor>& all,
                             const std::string& config_json = config) {
  temporary_folder folder;
  folder.write("config.json", config_json);
  folder.write("model.safetensors", file_of(all));
  return checkpoint::open(folder.path());
}

TEST(Checkpoint, OpensAFolder) {
  auto model = open_with(tensors());
  ASSERT_TRUE(model) << model.why().text;
  EXPECT_EQ(model->tensors().size(), 12u);
  EXPECT_EQ(model->find("layers.0.k")->rows, 4u);
  EXPECT_EQ(model->find("norm")->rows, 1u);
  EXPECT_EQ(model->find("norm")->cols, 8u);
  EXPECT_EQ(model->find("norm")->type, dtype::f16);
  EXPECT_FALSE(model->find("layers.0.q")->interleaved_rope);
  EXPECT_EQ(model->find("nothing"), nullptr);
  EXPECT_EQ(model->defaults().eos_ids, (std::vector<uint32_t>{3}));
  checkpoint moved = *std::move(model);
  EXPECT_NE(moved.find("head"), nullptr);
}

TEST(Checkpoint, NamesWhatIsMissing) {
  auto all = tensors();
  all.erase(all.begin() + 4);
  EXPECT_WHY(open_with(all), "tensor layers.0.v is missing");
}

TEST(Checkpoint, NamesWhatHasAnotherShape) {
  auto all = tensors();
  all[3].dims = {2, 8};
  EXPECT_WHY(open_with(all), "tensor layers.0.k is 2 x 8; the model's numbers say 4 x 8");
}

TEST(Checkpoint, NamesWhatIsTooMuch) {
  auto all = tensors();
  all.push_back({"model.layers.0.self_attn.q_proj.bias", {8}});
  EXPECT_WHY(open_with(all), "tensor layers.0.q_bias is not part of a llama model");
  all.back() = {"model.layers.1.self_attn.q_proj.weight", {8, 8}};
  EXPECT_WHY(open_with(all), "tensor layers.1.q is not part of");
  all.back() = {"model.layers.0.self_attn.mystery", {8}};
  EXPECT_WHY(open_with(all), "tensor \"model.layers.0.self_attn.mystery\" is unknown");
  all.back() = {"model.layers.00.self_attn.q_proj.weight", {8, 8}};
  EXPECT_WHY(open_with(all), "is unknown");
  all.back() = {"model.layers.0.self_attn.rotary_emb.inv_freq", {2}};
  EXPECT_TRUE(open_with(all));
}

TEST(Checkpoint, TakesATiedHeadWhetherStoredOrNot) {
  std::string tied(config);
  tied.insert(1, R"("tie_word_embeddings":true,)");
  auto all = tensors();
  EXPECT_TRUE(open_with(all, tied));
  all.pop_back();
  auto model = open_with(all, tied);
  ASSERT_TRUE(model) << model.why().text;
  EXPECT_EQ(model->find("head"), nullptr);
  EXPECT_WHY(open_with(all), "tensor head is missing");
}

TEST(Checkpoint, RefusesATypeByName) {
  temporary_folder folder;
  folder.write("config.json", config);
  folder.write("model.safetensors", file_of(tensors(), "I16"));
  EXPECT_WHY(checkpoint::open(folder.path()), "has type I16; supported: F32, F16, BF16");
}

TEST(Checkpoint, SaysHowToMendAFolderWithoutSafetensors) {
  temporary_folder folder;
  EXPECT_WHY(checkpoint::open(folder / "nowhere"), "is not there");
  EXPECT_WHY(checkpoint::open(folder.path()), "config.json: cannot open");
  folder.write("config.json", config);
  EXPECT_WHY(checkpoint::open(folder.path()), "has neither model.safetensors");
  folder.write("pytorch_model.bin", "");
  EXPECT_WHY(checkpoint::open(folder.path()),
             "pytorch_model.bin is not supported; supported: model.safetensors. Convert it");
  auto odd = folder.write("odd.gguf", "nothing like it");
  EXPECT_WHY(checkpoint::open(odd), "not a GGUF file");
}

TEST(CheckpointShards, MustAgreeWithTheIndex) {
  auto all = tensors();
  std::vector<written_tensor> first(all.begin(), all.begin() + 6),
      second(all.begin() + 6, all.end());
  auto index = [&](auto file_for) {
    std::string map;
    for (size_t i = 0; i < all.size(); ++i)
      map += (i ? ",\"" : "\"") + all[i].name + "\":\"" + file_for(i) + "\"";
    return R"({"weight_map":{)" + map + "}}";
  };
  auto right = [](size_t i) { return std::string(i < 6 ? "1.st" : "2.st"); };
  temporary_folder folder;
  folder.write("config.json", config);
  folder.write("1.st", file_of(first));
  folder.write("model.safetensors.index.json", index(right));
  EXPECT_WHY(checkpoint::open(folder.path()), "names 2.st, which is not there");
  folder.write("2.st", file_of(second));
  EXPECT_TRUE(checkpoint::open(folder.path()));
  folder.write("model.safetensors.index.json",
               index([&](size_t i) { return i == 0 ? std::string("2.st") : right(i); }));
  EXPECT_WHY(checkpoint::open(folder.path()), "places in another file");
  folder.write("2.st", file_of({second.begin() + 1, second.end()}));
  folder.write("model.safetensors.index.json", index(right));
  EXPECT_WHY(checkpoint::open(folder.path()), "is not in 2.st");
  second.push_back(first[0]);
  folder.write("2.st", file_of(second));
  EXPECT_WHY(checkpoint::open(folder.path()), "places in another file");
}

TEST(Rope, RowsOfEachHeadArePairsInALlamaGguf) {
  // A head of six holds 0 3 1 4 2 5.
  const uint32_t at[] = {0, 2, 4, 1, 3, 5};
  for (uint32_t r = 0; r < 6; ++r) {
    EXPECT_EQ(unpermuted_row(r, 6), at[r]);
    EXPECT_EQ(unpermuted_row(12 + r, 6), 12 + at[r]);
  }
  std::set<uint32_t> seen;
  for (uint32_t r = 0; r < 128; ++r) seen.insert(unpermuted_row(r, 32));
  EXPECT_EQ(seen.size(), 128u);
}

/// Both forms of each published model: the same shape, and bit by bit the same weights.
class Published : public testing::TestWithParam<const char*> {};

std::vector<float> row_of(const raw_tensor& t, uint32_t row) {
  std::vector<float> out(t.cols);
  size_t bytes = t.cols / block_elements(t.type) * block_bytes(t.type);
  dequantize_row(t.type, t.data.data() + row * bytes, out.data(), t.cols);
  return out;
}

void expect_same_weights(const raw_tensor& hf, const raw_tensor& gguf, uint32_t head_dim) {
  ASSERT_EQ(hf.rows, gguf.rows) << hf.name;
  ASSERT_EQ(hf.cols, gguf.cols) << hf.name;
  for (uint32_t r = 0; r < hf.rows; ++r)
    ASSERT_EQ(row_of(hf, r), row_of(gguf, gguf.interleaved_rope ? unpermuted_row(r, head_dim) : r))
        << hf.name << " " << r;
}

TEST_P(Published, FolderAndGgufAreTheSameModel) {
  LETHE_NEEDS_VECTORS();
  std::string name = GetParam();
  auto hf = checkpoint::open(test::vectors() / "models" / name);
  auto gguf = checkpoint::open(test::vectors() / "gguf" / (name + ".gguf"));
  ASSERT_TRUE(hf) << hf.why().text;
  ASSERT_TRUE(gguf) << gguf.why().text;
  const auto &a = hf->shape(), &b = gguf->shape();
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(std::tie(a.layers, a.hidden, a.heads, a.kv_heads, a.head_dim, a.ffn, a.vocab),
            std::tie(b.layers, b.hidden, b.heads, b.kv_heads, b.head_dim, b.ffn, b.vocab));
  EXPECT_EQ(std::tie(a.context_max, a.norm_eps, a.rope.theta, a.rope.rotary, a.window),
            std::tie(b.context_max, b.norm_eps, b.rope.theta, b.rope.rotary, b.window));
  EXPECT_EQ(std::tie(a.qkv_bias, a.o_bias, a.mlp_bias, a.qk_norm, a.tied),
            std::tie(b.qkv_bias, b.o_bias, b.mlp_bias, b.qk_norm, b.tied));
  EXPECT_EQ(hf->defaults().bos_id, gguf->defaults().bos_id);
  EXPECT_EQ(hf->defaults().eos_ids[0], 507u);
  EXPECT_EQ(gguf->defaults().eos_ids[0], 507u);
  ASSERT_EQ(hf->tensors().size(), gguf->tensors().size());
  for (const auto& t : hf->tensors()) {
    ASSERT_NE(gguf->find(t.name), nullptr) << t.name;
    expect_same_weights(t, *gguf->find(t.name), a.head_dim);
    hf->release(t);  // must not lose what a file holds
    expect_same_weights(t, *gguf->find(t.name), a.head_dim);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Published,
                         testing::Values("llama-tiny", "llama-tiny-f16", "llama-tiny-sharded",
                                         "qwen2-tiny", "qwen3-tiny"),
                         [](const auto& p) {
                           std::string name = p.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace lethe
