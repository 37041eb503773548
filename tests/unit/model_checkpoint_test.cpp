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
  EXPECT_WHY(open_with(all), "tensor \"model.layers.0.self_attn.v_proj.weight\" is missing");
}

TEST(Checkpoint, NamesWhatHasAnotherShape) {
  auto all = tensors();
  all[3].dims = {2, 8};
  EXPECT_WHY(open_with(all),
             "tensor \"model.layers.0.self_attn.k_proj.weight\" is 2 x 8; the model's numbers say "
             "4 x 8");
  all[1].dims = {4};
  EXPECT_WHY(open_with(all), "input_layernorm.weight\" is 4; the model's numbers say 8");
  all[1].dims = {8, 1};
  EXPECT_WHY(open_with(all), "input_layernorm.weight\" is 8 x 1; the model's numbers say 8");
  all[1].dims = {2, 2, 2};
  EXPECT_WHY(open_with(all), "input_layernorm.weight\" is neither a vector nor a matrix");
}

TEST(Checkpoint, NamesWhatIsTooMuch) {
  auto all = tensors();
  all.push_back({"model.layers.0.self_attn.q_proj.bias", {8}});
  EXPECT_WHY(open_with(all), "self_attn.q_proj.bias\" is not part of a llama model");
  all.back() = {"model.layers.1.self_attn.q_proj.weight", {8, 8}};
  EXPECT_WHY(open_with(all), "model.layers.1.self_attn.q_proj.weight\" is not part of");
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
  EXPECT_WHY(open_with(all), "tensor \"lm_head.weight\" is missing");
}

TEST(Checkpoint, TakesATiedHeadInTheEmbeddingsStead) {
  std::string tied(config);
  tied.insert(1, R"("tie_word_embeddings":true,)");
  auto all = tensors();
  all.erase(all.begin());
  auto model = open_with(all, tied);
  ASSERT_TRUE(model) << model.why().text;
  EXPECT_NE(model->find("embed"), nullptr);
  EXPECT_EQ(model->find("head"), nullptr);
}

/// All that is wrong with a folder of these tensors.
std::vector<std::string> problems_of(const std::vector<written_tensor>& all,
                                     const std::string& config_json, const char* type = "F16") {
  temporary_folder folder;
  folder.write("config.json", config_json);
  folder.write("model.safetensors", file_of(all, type));
  std::vector<std::string> problems;
  EXPECT_TRUE(checkpoint::examine(folder.path(), problems));
  return problems;
}

std::string replaced(std::string text, std::string_view before, std::string_view after) {
  EXPECT_NE(text.find(before), text.npos);
  return text.replace(text.find(before), before.size(), after);
}

TEST(CheckpointProblems, CountEqualFaultsInsteadOfRepeatingThem) {
  auto six = replaced(config, R"("num_hidden_layers":1)", R"("num_hidden_layers":6)");
  auto problems = problems_of(tensors(), six);
  ASSERT_EQ(problems.size(), 9u);  // what one layer has
  EXPECT_NE(problems[0].find("\"model.layers.1.input_layernorm.weight\" is missing (and 4 more"),
            std::string::npos)
      << problems[0];
}

TEST(CheckpointProblems, OfConfigAndOfTensorsAreAllListed) {
  auto all = tensors();
  all[3].dims = {2, 8};
  all.push_back({"model.layers.0.self_attn.mystery", {8}});
  all.erase(all.begin() + 4);
  auto bad = replaced(config, R"("vocab_size")", R"("hidden_act":"gelu","vocab_size")");
  auto problems = problems_of(all, bad);
  ASSERT_EQ(problems.size(), 4u);
  for (const char* part : {"hidden_act", "mystery\" is unknown", "k_proj.weight\" is 2 x 8",
                           "v_proj.weight\" is missing"})
    EXPECT_TRUE(std::any_of(problems.begin(), problems.end(), [&](auto& p) {
      return p.find(part) != p.npos;
    })) << part;
}

TEST(CheckpointProblems, NameATypeOnceAndMissNothingThatIsThere) {
  auto problems = problems_of(tensors(), config, "I16");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("has type I16; supported: F32, F16, BF16 (and 11 more"),
            std::string::npos)
      << problems[0];
}

TEST(CheckpointProblems, OfAnotherFamilyAreNotItsTensors) {
  auto gpt = replaced(config, R"("llama")", R"("gpt2")");
  auto problems = problems_of({{"wte.weight", {4, 8}}}, gpt);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("model_type \"gpt2\""), std::string::npos);
}

TEST(CheckpointProblems, StopAtAHundred) {
  auto all = tensors();
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'j'; ++b) all.push_back({std::string("x") + a + b, {8}});
  auto problems = problems_of(all, config);
  ASSERT_EQ(problems.size(), 101u);
  EXPECT_EQ(problems.back(), "and more, not listed");
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
  EXPECT_WHY(checkpoint::open(folder.path()), "has no config.json; a model is");
  folder.write("config.json", config);
  EXPECT_WHY(checkpoint::open(folder.path()), "has neither model.safetensors");
  folder.write("pytorch_model.bin", "");
  EXPECT_WHY(checkpoint::open(folder.path()),
             "pytorch_model.bin is not supported; supported: model.safetensors. Convert it");
  folder.write("model-00001-of-00002.safetensors", "");
  EXPECT_WHY(checkpoint::open(folder.path()),
             "holds model-00001-of-00002.safetensors, but neither");
  auto odd = folder.write("odd.gguf", "nothing like it");
  EXPECT_WHY(checkpoint::open(odd), "not a GGUF file");
}

TEST(Checkpoint, SaysWhichFileOrFolderToNameInstead) {
  temporary_folder folder;
  folder.write("adapter_config.json", "{}");
  EXPECT_WHY(checkpoint::open(folder.path()), "an adapter is not supported; merge it");
  folder.write("b.gguf", "");
  folder.write("a.gguf", "");
  EXPECT_WHY(checkpoint::open(folder.path()), "but a.gguf: name that file");
  auto weights = folder.write("model.safetensors", file_of(tensors()));
  EXPECT_WHY(checkpoint::open(weights), "holds weights only; name its folder");
}

TEST(Checkpoint, KnowsAGitLfsPointer) {
  std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
  temporary_folder folder;
  EXPECT_WHY(checkpoint::open(folder.write("m.gguf", pointer)), "run `git lfs pull`");
  folder.write("config.json", config);
  folder.write("model.safetensors", pointer);
  EXPECT_WHY(checkpoint::open(folder.path()), "run `git lfs pull`");
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
  auto extra = second;
  extra.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {2}});
  folder.write("2.st", file_of(extra));
  EXPECT_TRUE(checkpoint::open(folder.path()));  // an index may leave out what is derived
  extra.back().name = "mystery";
  folder.write("2.st", file_of(extra));
  EXPECT_WHY(checkpoint::open(folder.path()),
             "holds tensor \"mystery\", which the index does not know");
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
