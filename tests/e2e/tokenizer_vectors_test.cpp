// Ids and texts that other implementations made with published vocabularies.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "runtime/base/limits.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/model/gguf_vocab_read.hpp"
#include "runtime/tokenizer/stream_decoder.hpp"
#include "runtime/tokenizer/tokenizer.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

using std::filesystem::path;
using ids = std::vector<uint32_t>;

path vectors() {
  const char* there = std::getenv("LETHE_VECTORS");
  return there ? path(there) : path(places::vectors);
}

bool in_ci() {
  const char* ci = std::getenv("CI");
  return ci && std::string_view(ci) == "true";
}

std::string text_of(const path& p) {
  auto text = read_text(p, limits::json_file_bytes_max);
  EXPECT_TRUE(text) << p;
  return text ? *text : std::string();
}

struct vocabulary_files {
  const char* name;
  const char* gguf;
};

class TokenizerVectors : public testing::TestWithParam<vocabulary_files> {
 protected:
  void SetUp() override {
    if (std::filesystem::exists(folder())) return;
    ASSERT_FALSE(in_ci()) << "test data is absent: " << folder();
    GTEST_SKIP() << "test data is absent: " << folder();
  }
  path folder() const { return vectors() / "tokenizers"; }
  std::string name() const { return GetParam().name; }

  result<tokenizer> from_hf() const {
    path hf = folder() / (name() + ".hf");
    return tokenizer::from_json(text_of(hf / "tokenizer.json"),
                                text_of(hf / "tokenizer_config.json"));
  }
  result<tokenizer> from_gguf() const {
    auto file = gguf_file::open(folder() / GetParam().gguf);
    if (!file) return file.why();
    auto vocab = read_vocab(*file);
    if (!vocab) return vocab.why();
    return tokenizer::from_gguf(*vocab);
  }
};

ids encoded(const tokenizer& t, std::string_view text, bool add_special) {
  auto out = t.encode(text, {.add_special = add_special}, std::pmr::get_default_resource());
  EXPECT_TRUE(out);
  return out ? ids(out->begin(), out->end()) : ids();
}

ids ids_of(simdjson::dom::element e) {
  ids out;
  for (uint64_t id : e.get_array()) out.push_back(uint32_t(id));
  return out;
}

std::string streamed(const tokenizer& t, const ids& tokens) {
  std::pmr::string piece, all;
  stream_decoder decoder(t, false, std::pmr::get_default_resource());
  for (uint32_t id : tokens) {
    piece.clear();
    decoder.push(id, piece);
    all += piece;
  }
  decoder.flush(all);
  return std::string(all);
}

// llama.cpp's files: texts between marker lines, and one line of ids for each.
void expect_inp_out(const tokenizer& t, const path& gguf_name) {
  std::string inp = text_of(gguf_name.string() + ".inp");
  std::istringstream out(text_of(gguf_name.string() + ".out"));
  constexpr std::string_view marker = "\n__ggml_vocab_test__\n";
  std::string line;
  size_t begin = 0, cases = 0;
  while (std::getline(out, line)) {
    size_t end = inp.find(marker, begin);
    ASSERT_NE(end, inp.npos);
    std::istringstream numbers(line);
    ids want{std::istream_iterator<uint32_t>(numbers), {}};
    EXPECT_EQ(encoded(t, inp.substr(begin, end - begin), false), want) << "case " << cases;
    begin = end + marker.size();
    cases++;
  }
  EXPECT_GE(cases, 46u);
}

// Where Hugging Face's file normalizes and llama.cpp's does not, the vector brings its ids.
void expect_extra(const tokenizer& t, const path& file, bool llama_cpp) {
  simdjson::dom::parser parser;
  size_t cases = 0;
  for (auto c : parser.load(file.string())["vectors"].get_array()) {
    std::string text(c["text"].get_string().value());
    std::string_view note;
    if (llama_cpp && !c["note"].get(note)) continue;
    EXPECT_EQ(encoded(t, text, false), ids_of(c["ids"])) << text;
    EXPECT_EQ(encoded(t, text, true), ids_of(c["ids_with_special"])) << text;
    std::string want(c["decoded"].get_string().value());
    cases++;
    if (want.starts_with("ERR")) continue;
    ids tokens = ids_of(c["ids"]);
    auto whole = t.decode(tokens, false, std::pmr::get_default_resource());
    EXPECT_EQ(std::string_view(whole), want);
    EXPECT_EQ(streamed(t, tokens), want);
  }
  EXPECT_GE(cases, 40u);
}

TEST_P(TokenizerVectors, HuggingFaceFileGivesTheSameIdsAndTexts) {
  auto t = from_hf();
  ASSERT_TRUE(t) << t.why().text;
  expect_extra(*t, folder() / (name() + ".extra.json"), false);
}

TEST_P(TokenizerVectors, GgufFileGivesTheSameIdsAndTexts) {
  auto t = from_gguf();
  ASSERT_TRUE(t) << t.why().text;
  expect_extra(*t, folder() / (name() + ".extra.json"), true);
}

TEST_P(TokenizerVectors, BothFilesGiveLlamaCppsIds) {
  auto gguf = from_gguf(), hf = from_hf();
  ASSERT_TRUE(gguf) << gguf.why().text;
  ASSERT_TRUE(hf) << hf.why().text;
  path stem = folder() / ("ggml-vocab-" + name() + ".gguf");
  expect_inp_out(*gguf, stem);
  expect_inp_out(*hf, stem);
}

INSTANTIATE_TEST_SUITE_P(
    Published, TokenizerVectors,
    testing::Values(vocabulary_files{"gpt-2", "ggml-vocab-gpt-2.gguf"},
                    vocabulary_files{"llama-spm", "ggml-vocab-llama-spm.gguf"},
                    vocabulary_files{"llama-bpe", "ggml-vocab-llama-bpe.rebuilt.gguf"},
                    vocabulary_files{"qwen2", "ggml-vocab-qwen2.rebuilt.gguf"}),
    [](auto& files) {
      std::string name = files.param.name;
      std::erase(name, '-');
      return name;
    });

struct chat_files {
  const char* tokenizer;
  const char* chat;
};

class ChatVectors : public testing::TestWithParam<chat_files> {};

TEST_P(ChatVectors, RenderedConversationsGiveTheSameIds) {
  path hf = vectors() / "tokenizers" / GetParam().tokenizer;
  if (!std::filesystem::exists(hf)) {
    ASSERT_FALSE(in_ci()) << "test data is absent: " << hf;
    GTEST_SKIP() << "test data is absent: " << hf;
  }
  auto t =
      tokenizer::from_json(text_of(hf / "tokenizer.json"), text_of(hf / "tokenizer_config.json"));
  ASSERT_TRUE(t) << t.why().text;
  simdjson::dom::parser parser;
  size_t cases = 0;
  auto file = vectors() / "chat-templates" / GetParam().chat;
  for (auto c : parser.load(file.string())["cases"].get_array()) {
    std::string_view output;
    if (c["output"].get(output)) continue;
    EXPECT_EQ(encoded(*t, output, false), ids_of(c["ids"])) << output;
    cases++;
  }
  EXPECT_GE(cases, 3u);
}

INSTANTIATE_TEST_SUITE_P(Published, ChatVectors,
                         testing::Values(chat_files{"llama-bpe.hf", "llama-3.json"},
                                         chat_files{"llama-bpe.hf", "llama-3.1.json"},
                                         chat_files{"llama-bpe.hf", "llama-3.2.json"},
                                         chat_files{"qwen2.hf", "qwen2.5.json"}));

}  // namespace
}  // namespace lethe
