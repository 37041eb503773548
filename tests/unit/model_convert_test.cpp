#include "runtime/model/convert.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>

#include "model_files.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/gguf_vocab_read.hpp"
#include "runtime/model/inspect.hpp"
#include "runtime/model/quantize.hpp"

namespace lethe {
namespace {

using test::temporary_folder;
using test::vectors;

std::vector<float> row_of(const raw_tensor& t, uint32_t row) {
  std::vector<float> out(t.cols);
  size_t bytes = t.cols / block_elements(t.type) * block_bytes(t.type);
  dequantize_row(t.type, t.data.data() + row * bytes, out.data(), t.cols);
  return out;
}

class Convert : public testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path folder() const { return vectors() / "models" / GetParam(); }
  std::filesystem::path oracle() const {
    return vectors() / "gguf" / (std::string(GetParam()) + ".gguf");
  }
};

/// The value as text, whatever its kind; a float by its bits.
std::string shown(const gguf_value& v) {
  return std::string(name_of(v.kind)) + "/" + name_of(v.element) + "/" + std::to_string(v.count) +
         "/" + std::string(as_text(v.bytes));
}

TEST_P(Convert, SaysWhatAnotherConverterSays) {
  LETHE_NEEDS_VECTORS();
  temporary_folder out;
  auto report = convert_to_gguf(folder(), out / "x.gguf", {.type = dtype::f32});
  ASSERT_TRUE(report) << report.why().text;
  auto ours = gguf_file::open(out / "x.gguf"), theirs = gguf_file::open(oracle());
  ASSERT_TRUE(ours) << ours.why().text;
  ASSERT_TRUE(theirs) << theirs.why().text;
  EXPECT_EQ(report->bytes, std::filesystem::file_size(out / "x.gguf"));
  for (auto key : theirs->keys()) {
    ASSERT_NE(ours->find(key), nullptr) << key;
    EXPECT_EQ(shown(*ours->find(key)), shown(*theirs->find(key))) << key;
  }
  ASSERT_EQ(ours->tensors().size(), theirs->tensors().size());
  for (const auto& t : theirs->tensors()) {
    const gguf_tensor* o = ours->find_tensor(t.name);
    ASSERT_NE(o, nullptr) << t.name;
    EXPECT_EQ(o->dims, t.dims) << t.name;
    EXPECT_EQ(o->dims_count, t.dims_count) << t.name;
    EXPECT_TRUE(as_text(o->data) == as_text(t.data)) << t.name;
  }
}

TEST_P(Convert, KeepsWeightsWithinTheType) {
  LETHE_NEEDS_VECTORS();
  temporary_folder out;
  auto from = checkpoint::open(folder());
  ASSERT_TRUE(from);
  for (uint8_t i = 0; i < dtype_count; ++i) {
    uint64_t last = 0, all = 0;
    convert_options options{.type = dtype(i), .threads = i % 3 + 1u};
    options.progress = [&](uint64_t done, uint64_t total) {
      EXPECT_GT(done, last);
      last = done;
      all = total;
    };
    auto report = convert_to_gguf(folder(), out / "x.gguf", options);
    ASSERT_TRUE(report) << report.why().text;
    EXPECT_EQ(all, report->bytes);
    auto to = checkpoint::open(out / "x.gguf");
    ASSERT_TRUE(to) << to.why().text;
    bool falls = block_elements(dtype(i)) == 256;  // these models' columns are 64 and 128
    EXPECT_EQ(report->kept.empty(), !falls);
    const raw_tensor& t = *to->find("layers.1.k");
    EXPECT_EQ(t.type, falls ? dtype::f16 : dtype(i));
    EXPECT_EQ(to->find("norm")->type, dtype::f32);
    for (uint32_t r = 0; r < t.rows; ++r) {
      uint32_t at = t.interleaved_rope ? unpermuted_row(r, to->shape().head_dim) : r;
      auto x = row_of(*from->find("layers.1.k"), r), y = row_of(t, at);
      float most = 0;
      for (float v : x) most = std::max(most, std::fabs(v));
      for (size_t c = 0; c < x.size(); ++c) ASSERT_NEAR(x[c], y[c], most / 7) << r << " " << c;
    }
  }
}

TEST_P(Convert, KeepsTheVocabulary) {
  LETHE_NEEDS_VECTORS();
  temporary_folder out;
  ASSERT_TRUE(convert_to_gguf(folder(), out / "x.gguf", {.type = dtype::q8_0}));
  auto file = gguf_file::open(out / "x.gguf");
  ASSERT_TRUE(file);
  auto vocab = read_vocab(*file);
  ASSERT_TRUE(vocab) << vocab.why().text;
  EXPECT_EQ(vocab->eos, 507u);
  EXPECT_EQ(vocab->eot, 510u);  // generation_config.json's second
  EXPECT_EQ(vocab->pad, 511u);
  EXPECT_EQ(vocab->tokens.size(), 512u);
}

INSTANTIATE_TEST_SUITE_P(Models, Convert,
                         testing::Values("llama-tiny", "llama-tiny-sharded", "qwen2-tiny",
                                         "qwen3-tiny"),
                         [](const auto& p) {
                           std::string name = p.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// A copy of llama-tiny with one file edited.
class edited_model : public temporary_folder {
 public:
  edited_model(const std::string& file, const std::string& before, const std::string& after) {
    for (const auto& e : std::filesystem::directory_iterator(vectors() / "models" / "llama-tiny"))
      if (e.path().extension() != ".npy")
        std::filesystem::copy(e.path(), path() / e.path().filename());
    std::ifstream in(path() / file);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    size_t at = text.find(before);
    EXPECT_NE(at, std::string::npos);
    if (at != std::string::npos) write(file, text.replace(at, before.size(), after));
  }
};

model_shape through_gguf(const std::filesystem::path& folder) {
  temporary_folder out;
  auto report = convert_to_gguf(folder, out / "x.gguf", {.type = dtype::f16});
  EXPECT_TRUE(report) << (report ? "" : report.why().text);
  auto model = checkpoint::open(out / "x.gguf");
  EXPECT_TRUE(model) << (model ? "" : model.why().text);
  return model ? model->shape() : model_shape{};
}

void expect_same_frequencies(const std::filesystem::path& folder) {
  auto from = checkpoint::open(folder);
  ASSERT_TRUE(from) << from.why().text;
  auto to = through_gguf(folder);
  auto a = rope_frequencies(from->shape().rope), b = rope_frequencies(to.rope);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i] / a[i], 1, 1e-6);
  EXPECT_NEAR(rope_magnitude(from->shape().rope), rope_magnitude(to.rope), 1e-6);
}

TEST(ConvertRope, KeepsTheFrequencies) {
  LETHE_NEEDS_VECTORS();
  for (const char* scaling :
       {R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,
           "original_max_position_embeddings":128})",
        R"({"type":"linear","factor":4})",
        R"({"type":"yarn","factor":4,"original_max_position_embeddings":128})",
        R"({"type":"yarn","factor":4,"original_max_position_embeddings":128,"beta_fast":16,
           "beta_slow":2,"attention_factor":0.9})"}) {
    edited_model model("config.json", R"("rope_scaling": null)",
                       R"("rope_scaling": )" + std::string(scaling));
    expect_same_frequencies(model.path());
  }
}

TEST(ConvertRope, RefusesWhatGgufCannotSay) {
  LETHE_NEEDS_VECTORS();
  edited_model model("config.json", R"("rope_scaling": null)",
                     R"("rope_scaling": {"type":"yarn","factor":4,"truncate":false})");
  EXPECT_WHY(convert_to_gguf(model.path(), model / "x.gguf", {}), "cannot be written to GGUF");
  EXPECT_FALSE(std::filesystem::exists(model / "x.gguf"));
}

TEST(ConvertWindow, KeepsMistrals) {
  LETHE_NEEDS_VECTORS();
  edited_model model("config.json", R"("model_type": "llama")",
                     R"("model_type": "mistral", "sliding_window": 100)");
  auto text = read_text(model / "config.json", 1 << 20);
  ASSERT_TRUE(text);
  text->replace(text->find("LlamaFor"), 8, "MistralFor");
  model.write("config.json", *text);
  EXPECT_EQ(through_gguf(model.path()).window, (std::vector<uint32_t>{100, 100}));
}

TEST(ConvertVocab, RefusesWordsThatGgufHasNoNameFor) {
  LETHE_NEEDS_VECTORS();
  edited_model split("tokenizer.json", R"("type":"ByteLevel","add_prefix_space":false)",
                     R"("type":"Punctuation","add_prefix_space":false)");
  EXPECT_WHY(convert_to_gguf(split.path(), split / "x.gguf", {}), "has no name in GGUF");
  edited_model unigram("tokenizer.json", R"("type":"BPE")", R"("type":"Unigram")");
  EXPECT_WHY(convert_to_gguf(unigram.path(), unigram / "x.gguf", {}),
             "model.type \"Unigram\" cannot be written to GGUF; supported: BPE");
}

TEST(ConvertVocab, TakesAMaximumLengthBeyond64Bits) {
  LETHE_NEEDS_VECTORS();
  edited_model model("tokenizer_config.json", R"("model_max_length": 512)",
                     R"("model_max_length": 1000000000000000019884624838656)");
  auto report = convert_to_gguf(model.path(), model / "x.gguf", {.type = dtype::f16});
  EXPECT_TRUE(report) << report.why().text;
}

size_t characters(std::string_view utf8) {
  return size_t(std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

TEST(ConvertVocab, WritesSentencePieceWithScoresInTheOrderOfItsMerges) {
  LETHE_NEEDS_VECTORS();
  // The published vocabulary needs a model with as many rows; only its tokenizer counts here.
  auto published = gguf_file::open(vectors() / "tokenizers" / "ggml-vocab-llama-spm.gguf");
  ASSERT_TRUE(published);
  auto theirs = read_vocab(*published);
  ASSERT_TRUE(theirs);
  temporary_folder model, out;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy(vectors() / "tokenizers" / "llama-spm.hf" / name, model / name);
  model.write("config.json", R"({"model_type":"llama","hidden_size":2,"num_hidden_layers":1,
    "num_attention_heads":1,"vocab_size":32000,"intermediate_size":2,"tie_word_embeddings":true})");
  std::string header = "{", l = "model.layers.0.";
  size_t at = 0;
  auto tensor = [&](const std::string& name, const std::string& shape, size_t bytes) {
    header += (at ? ",\"" : "\"") + name + R"(":{"dtype":"F16","shape":[)" + shape +
              R"(],"data_offsets":[)" + std::to_string(at) + "," + std::to_string(at + bytes) +
              "]}";
    at += bytes;
  };
  tensor("model.embed_tokens.weight", "32000,2", 128000);
  for (auto name : {"input_layernorm", "post_attention_layernorm"})
    tensor(l + name + ".weight", "2", 4);
  for (auto name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    tensor(l + name + ".weight", "2,2", 8);
  tensor("model.norm.weight", "2", 4);
  model.write("model.safetensors", test::safetensors(header + "}", std::string(at, '\0')));
  auto report = convert_to_gguf(model.path(), out / "x.gguf", {.type = dtype::f32});
  ASSERT_TRUE(report) << report.why().text;
  auto file = gguf_file::open(out / "x.gguf");
  ASSERT_TRUE(file);
  auto ours = read_vocab(*file);
  ASSERT_TRUE(ours) << ours.why().text;
  EXPECT_EQ(ours->model, theirs->model);
  EXPECT_EQ(ours->pre, theirs->pre);
  EXPECT_TRUE(ours->tokens == theirs->tokens);
  EXPECT_TRUE(ours->types == theirs->types);
  EXPECT_EQ(std::tie(ours->bos, ours->eos, ours->unk, ours->add_bos, ours->add_eos),
            std::tie(theirs->bos, theirs->eos, theirs->unk, theirs->add_bos, theirs->add_eos));
  // The better score decides which pair merges first: the order must be theirs. A single character
  // never comes about by merging.
  std::vector<uint32_t> pieces;
  for (uint32_t i = 0; i < ours->tokens.size(); ++i)
    if (ours->types[i] == 1 && characters(ours->tokens[i]) > 1) pieces.push_back(i);
  std::sort(pieces.begin(), pieces.end(),
            [&](uint32_t a, uint32_t b) { return ours->scores[a] > ours->scores[b]; });
  ASSERT_GT(pieces.size(), 29000u);
  for (size_t i = 1; i < pieces.size(); ++i)
    ASSERT_GE(theirs->scores[pieces[i - 1]], theirs->scores[pieces[i]]) << pieces[i];
}

TEST(ConvertFile, LeavesNothingBehindWhenTheDiskIsFull) {
  LETHE_NEEDS_VECTORS();
  temporary_folder out;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{100000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto report =
      convert_to_gguf(vectors() / "models" / "llama-tiny", out / "x.gguf", {.type = dtype::f32});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_WHY(report, "cannot write: File too large");
  EXPECT_TRUE(std::filesystem::is_empty(out.path()));
}

TEST(ConvertFile, RefusesAnImpossiblePlaceAndAGgufSource) {
  LETHE_NEEDS_VECTORS();
  temporary_folder out;
  EXPECT_WHY(convert_to_gguf(vectors() / "models" / "llama-tiny", out / "no" / "x.gguf", {}),
             "cannot create: No such file");
  EXPECT_WHY(convert_to_gguf(vectors() / "gguf" / "llama-tiny.gguf", out / "x.gguf", {}),
             "is a GGUF file already");
}

TEST(Inspect, CountsWhatAModelNeeds) {
  LETHE_NEEDS_VECTORS();
  auto facts = inspect_model(vectors() / "models" / "qwen3-tiny", 100);
  ASSERT_TRUE(facts) << facts.why().text;
  EXPECT_TRUE(facts->problems.empty());
  EXPECT_EQ(facts->shape.family, "qwen3");
  // Embedding, two layers of attention (128 + 64 + 64 + 128) and feed-forward (3 x 128), norms.
  EXPECT_EQ(facts->parameters, 512u * 64 + 2 * (384u * 64 + 384u * 64 + 2 * 64 + 2 * 32) + 64);
  EXPECT_EQ(facts->types.size(), 1u);
  EXPECT_EQ(facts->types[0].type, "bf16");
  EXPECT_EQ(facts->file_bytes, facts->parameters * 2);
  EXPECT_GE(facts->weight_bytes, facts->file_bytes);
  EXPECT_EQ(facts->kv[0].bytes_per_token, 2u * 2 * 2 * 32 * 4);
  EXPECT_EQ(facts->kv[0].bytes, 100u * 1024);
  EXPECT_EQ(facts->window, "none: each token sees all before it");
}

TEST(Inspect, GivesTheTypesOfEachPart) {
  LETHE_NEEDS_VECTORS();
  temporary_folder out;
  ASSERT_TRUE(
      convert_to_gguf(vectors() / "models" / "llama-tiny", out / "x.gguf", {.type = dtype::q8_0}));
  auto facts = inspect_model(out / "x.gguf");
  ASSERT_TRUE(facts);
  std::string all;
  for (const auto& p : facts->parts)
    all += p.part + "=" + p.types[0].type + "x" + std::to_string(p.types[0].tensors) + " ";
  EXPECT_EQ(all,
            "embedding=q8_0x1 attention q=q8_0x2 attention k=q8_0x2 attention v=q8_0x2 "
            "attention o=q8_0x2 feed-forward gate=q8_0x2 feed-forward up=q8_0x2 "
            "feed-forward down=q8_0x2 norms=f32x5 head=q8_0x1 ");
}

TEST(Inspect, ShowsAModelThatCannotBeLoaded) {
  test::gguf_text file;
  file.text("general.architecture", "llama").u32("llama.block_count", 3);
  file.u32("llama.embedding_length", 256).u32("llama.expert_count", 8);
  file.tensor("blk.0.attn_q.weight", {256, 2}, 10, 0);  // Q2_K
  file.tensor("blk.0.ffn_gate_exps.weight", {256, 2, 8}, 0, 0).data.resize(16384);
  temporary_folder folder;
  auto facts = inspect_model(folder.write("x.gguf", file.bytes()));
  ASSERT_TRUE(facts) << facts.why().text;
  EXPECT_EQ(facts->shape.layers, 3u);
  EXPECT_EQ(facts->weight_bytes, 0u);
  ASSERT_EQ(facts->parts.size(), 2u);
  EXPECT_EQ(facts->parts[0].part, "attention q");
  EXPECT_EQ(facts->parts[0].types[0].type, "Q2_K");
  EXPECT_EQ(facts->parts[1].part, "unknown");
  std::string all;
  for (const auto& p : facts->problems) all += p + "\n";
  for (const char* part :
       {"llama.expert_count: mixture of experts", "llama.feed_forward_length is missing",
        "\"blk.0.attn_q.weight\" has type Q2_K", "\"blk.0.ffn_gate_exps.weight\" is unknown"})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
}

TEST(Inspect, ListsEveryProblem) {
  LETHE_NEEDS_VECTORS();
  edited_model model("config.json", R"("hidden_act": "silu")",
                     R"("hidden_act": "gelu", "num_experts": 8)");
  auto facts = inspect_model(model.path());
  ASSERT_TRUE(facts);
  ASSERT_EQ(facts->problems.size(), 2u);
  EXPECT_NE(facts->problems[0].find("num_experts"), std::string::npos);
  EXPECT_NE(facts->problems[1].find("hidden_act"), std::string::npos);
  EXPECT_EQ(facts->shape.layers, 2u);
  EXPECT_WHY(checkpoint::open(model.path()), "(and 1 more; `lethe model inspect` lists them)");
}

}  // namespace
}  // namespace lethe
