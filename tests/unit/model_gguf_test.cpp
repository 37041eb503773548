#include "runtime/model/gguf.hpp"

#include "model_files.hpp"
#include "runtime/model/gguf_vocab_read.hpp"

namespace lethe {
namespace {

using test::append;
using test::gguf_text;

result<gguf_file> parse(const std::string& bytes) {
  return gguf_file::parse(as_bytes(bytes), "x.gguf");
}

gguf_text one_tensor(uint64_t offset = 0) {
  gguf_text t;
  t.u32("a", 7).tensor("w", {32, 2}, 0, offset);
  t.data.resize(256);
  return t;
}

TEST(Gguf, ReadsEachKindOfValue) {
  gguf_text t;
  t.u32("u", 7).f32("f", 0.5f).flag("b", true).text("t", "words");
  t.key("i", 5, int32_t{-3}).key("q", 10, uint64_t{9}).key("d", 12, 2.5);
  t.array("texts", 8, 2, gguf_text::text("one") + gguf_text::text(""));
  std::string floats;
  append(floats, 1.5f);
  append(floats, -2.0f);
  t.array("floats", 6, 2, floats).array("octets", 0, 3, "abc").array("none", 8, 0, "");
  std::string bytes = t.bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file) << file.why().text;
  EXPECT_EQ(*file->get_u32("u"), 7u);
  EXPECT_EQ(*file->get_u32("q"), 9u);
  EXPECT_EQ(*file->get_u32("absent"), std::nullopt);
  EXPECT_EQ(*file->get_f32("f"), 0.5f);
  EXPECT_EQ(*file->get_f32("d"), 2.5f);
  EXPECT_EQ(*file->get_bool("b"), true);
  EXPECT_EQ(*file->get_text("t"), "words");
  EXPECT_EQ(*file->get_texts("texts"), (std::vector<std::string_view>{"one", ""}));
  EXPECT_EQ(*file->get_floats("floats"), (std::vector<float>{1.5f, -2.0f}));
  EXPECT_EQ(*file->get_octets("octets"), (std::vector<uint8_t>{'a', 'b', 'c'}));
  EXPECT_EQ(file->get_floats("none")->size(), 0u);
  EXPECT_EQ(file->keys().size(), 11u);
}

TEST(Gguf, RefusesAValueOfAnotherKind) {
  gguf_text t;
  t.f32("f", 1).key("i", 5, int32_t{-3}).key("q", 10, UINT64_MAX).array("a", 5, 1, "1234");
  std::string bytes = t.bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file);
  EXPECT_WHY(file->get_u32("f"), "\"f\" is f32, not an integer");
  EXPECT_WHY(file->get_u32("i"), "does not fit into 32 bits");
  EXPECT_WHY(file->get_u32("q"), "does not fit into 32 bits");
  EXPECT_WHY(file->get_text("a"), "an array of i32, not a text");
  EXPECT_WHY(file->get_floats("a"), "an array of i32, not an array of f32");
  EXPECT_WHY(file->get_texts("f"), "is f32, not an array of texts");
}

TEST(Gguf, ReadsATensorWhereItLies) {
  auto t = one_tensor(128);
  t.data.resize(128 + 256);
  t.data[128] = 'x';
  std::string bytes = t.bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file) << file.why().text;
  const gguf_tensor* w = file->find_tensor("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->dims, (std::array<uint64_t, 4>{32, 2, 1, 1}));
  EXPECT_EQ(w->data.size(), 256u);
  EXPECT_EQ(w->data[0], std::byte{'x'});
}

TEST(Gguf, ReadsVersionTwoAndRefusesOthers) {
  auto t = one_tensor();
  for (uint32_t version : {2, 3}) {
    t.version = version;
    EXPECT_TRUE(parse(t.bytes()));
  }
  t.version = 1;
  EXPECT_WHY(parse(t.bytes()), "version 1 is not supported; supported: 2, 3");
  t.version = 4;
  EXPECT_WHY(parse(t.bytes()), "version 4 is not supported");
  t.version = 0x03000000;
  EXPECT_WHY(parse(t.bytes()), "big-endian");
}

TEST(Gguf, RefusesEveryPrefixOfAFile) {
  auto t = one_tensor();
  t.text("name", "words").array("texts", 8, 1, gguf_text::text("one"));
  std::string bytes = t.bytes();
  ASSERT_TRUE(parse(bytes));
  for (size_t size = 0; size < bytes.size(); ++size) {
    // Its own memory, so that a sanitizer sees a read beyond the end.
    std::string prefix(bytes, 0, size);
    EXPECT_FALSE(parse(prefix)) << size;
  }
}

TEST(Gguf, RefusesCountsBeyondTheFile) {
  auto t = one_tensor();
  t.tensor_count = uint64_t{1} << 63;
  EXPECT_WHY(parse(t.bytes()), "claims 9223372036854775808 tensors");
  t = one_tensor();
  t.key_count = uint64_t{1} << 63;
  EXPECT_WHY(parse(t.bytes()), "claims 9223372036854775808 metadata keys");
  gguf_text a;
  a.array("a", 10, uint64_t{1} << 61, "");
  EXPECT_WHY(parse(a.bytes()), "claims 2305843009213693952 elements");
  gguf_text s;
  s.key("s", 8, uint64_t{1} << 63);
  EXPECT_WHY(parse(s.bytes()), "ends inside metadata key \"s\"");
}

TEST(Gguf, RefusesDuplicates) {
  gguf_text k;
  k.u32("a", 1).u32("a", 2);
  EXPECT_WHY(parse(k.bytes()), "metadata key \"a\" comes twice");
  auto t = one_tensor();
  t.tensor("w", {32}, 0, 0);
  EXPECT_WHY(parse(t.bytes()), "tensor \"w\" comes twice");
}

TEST(Gguf, RefusesATensorBeyondTheFile) {
  EXPECT_WHY(parse(one_tensor(32).bytes()), "needs 256 bytes at 32, but the file's data has 256");
  EXPECT_WHY(parse(one_tensor(uint64_t{1} << 63).bytes()), "needs 256 bytes");
  gguf_text huge;
  huge.tensor("w", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0);
  EXPECT_WHY(parse(huge.bytes()), "dimension 1 is 1099511627776");
}

TEST(Gguf, RefusesOverlap) {
  auto t = one_tensor();
  t.tensor("v", {32, 2}, 0, 224);
  t.data.resize(1024);
  EXPECT_WHY(parse(t.bytes()), "tensors \"w\" and \"v\" overlap");
}

TEST(Gguf, RefusesOddPlaces) {
  EXPECT_WHY(parse(one_tensor(4).bytes()), "begins at 4, not a multiple of 32");
  for (uint32_t bad : {0u, 33u, 1u << 21}) {
    auto t = one_tensor();
    t.u32("general.alignment", bad);
    EXPECT_WHY(parse(t.bytes()), "must be a power of two");
  }
  auto t = one_tensor(64);
  t.u32("general.alignment", 64).data.resize(320);
  EXPECT_TRUE(parse(t.bytes(64)));
}

TEST(Gguf, RefusesOddDimensions) {
  gguf_text none, five, zero, part;
  none.tensor("w", {}, 0, 0).data.resize(64);
  EXPECT_WHY(parse(none.bytes()), "has 0 dimensions");
  five.tensor("w", {1, 1, 1, 1, 1}, 0, 0).data.resize(64);
  EXPECT_WHY(parse(five.bytes()), "has 5 dimensions");
  zero.tensor("w", {0}, 0, 0).data.resize(64);
  EXPECT_WHY(parse(zero.bytes()), "dimension 0 is 0");
  part.tensor("w", {48}, 2, 0).data.resize(64);
  EXPECT_WHY(parse(part.bytes()), "rows of 48 elements are not whole q4_0 blocks of 32");
}

TEST(Gguf, KeepsATensorOfAnUnknownTypeWithoutData) {
  gguf_text t;
  t.tensor("w", {256}, 10, 0).data.resize(84);
  std::string bytes = t.bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->tensors()[0].type);
  EXPECT_EQ(gguf_type_name(file->tensors()[0].type_number), "Q2_K");
}

TEST(Gguf, BoundsNestedArrays) {
  auto nested = [](uint32_t depth) {
    std::string elements;
    for (uint32_t i = 0; i < depth; ++i) {
      append(elements, uint32_t{9});
      append(elements, uint64_t{1});
    }
    append(elements, uint32_t{0});
    append(elements, uint64_t{1});
    elements += 'x';
    gguf_text t;
    t.keys += gguf_text::text("a");
    append(t.keys, uint32_t{9});
    t.keys += elements;
    t.key_count = 1;
    return t.bytes();
  };
  EXPECT_TRUE(parse(nested(3)));
  EXPECT_WHY(parse(nested(4)), "nests arrays deeper than 4");
  EXPECT_WHY(parse(nested(100000)), "nests arrays deeper than 4");
}

TEST(GgufSplit, OpensAllParts) {
  test::temporary_folder folder;
  auto part = [](uint16_t no, uint16_t count, const char* tensor) {
    gguf_text t;
    t.key("split.no", 2, no).key("split.count", 2, count);
    if (no == 0) t.key("split.tensors.count", 5, int32_t{2});
    t.tensor(tensor, {8}, 0, 0).data.resize(32);
    return t.bytes();
  };
  auto first = folder.write("m-00001-of-00002.gguf", part(0, 2, "a"));
  EXPECT_WHY(gguf_file::open(first), "m-00002-of-00002.gguf: cannot open");
  auto second = folder.write("m-00002-of-00002.gguf", part(1, 2, "b"));
  auto file = gguf_file::open(first);
  ASSERT_TRUE(file) << file.why().text;
  EXPECT_EQ(file->tensors().size(), 2u);
  EXPECT_NE(file->find_tensor("b"), nullptr);
  EXPECT_WHY(gguf_file::open(second), "open the first");
  folder.write("m-00002-of-00002.gguf", part(1, 2, "a"));
  EXPECT_WHY(gguf_file::open(first), "tensor \"a\" is in an earlier part, too");
  folder.write("m-00002-of-00002.gguf", part(0, 2, "b"));
  EXPECT_WHY(gguf_file::open(first), "says it is part 1 of 2; expected part 2 of 2");
}

/// One part of a split file with a tensor of its own.
std::string split_part(uint16_t no, uint16_t count, const char* tensor, int32_t tensors) {
  gguf_text t;
  t.key("split.no", 2, no).key("split.count", 2, count);
  t.key("split.tensors.count", 5, tensors).tensor(tensor, {8}, 0, 0).data.resize(32);
  return t.bytes();
}

TEST(GgufSplit, RefusesPartsThatDoNotBelongTogether) {
  test::temporary_folder folder;
  auto first = folder.write("m-00001-of-00003.gguf", split_part(0, 3, "a", 3));
  folder.write("m-00002-of-00003.gguf", split_part(1, 3, "b", 3));
  EXPECT_WHY(gguf_file::open(first), "m-00003-of-00003.gguf: cannot open");
  folder.write("m-00003-of-00003.gguf", split_part(2, 4, "c", 3));
  EXPECT_WHY(gguf_file::open(first), "says it is part 3 of 4; expected part 3 of 3");
  folder.write("m-00003-of-00003.gguf", gguf_text().u32("general.file_type", 0).bytes());
  EXPECT_WHY(gguf_file::open(first), "says it is part 1 of 1; expected part 3 of 3");
  folder.write("m-00003-of-00003.gguf", "GGUF");
  EXPECT_WHY(gguf_file::open(first), "m-00003-of-00003.gguf: the file ends inside the header");
  folder.write("m-00003-of-00003.gguf", split_part(2, 3, "c", 3));
  EXPECT_TRUE(gguf_file::open(first));
  folder.write("m-00001-of-00003.gguf", split_part(0, 3, "a", 4));
  EXPECT_WHY(gguf_file::open(first), "its parts hold 3 tensors, not 4");
}

TEST(GgufSplit, RefusesNamesAndCountsThatAreNone) {
  test::temporary_folder folder;
  for (uint16_t count : {2, 10000, 65535})
    EXPECT_WHY(gguf_file::open(folder.write("renamed.gguf", split_part(0, count, "a", 2))),
               "open the first, NAME-00001-of-");
  auto alone = folder.write("m-00001-of-00002.gguf",
                            gguf_text().key("split.count", 11, int64_t{-1}).bytes());
  EXPECT_WHY(gguf_file::open(alone), "does not fit into 32 bits");
}

gguf_text small_vocab() {
  gguf_text t;
  t.text("tokenizer.ggml.model", "gpt2");
  t.array("tokenizer.ggml.tokens", 8, 2, gguf_text::text("a") + gguf_text::text("<|im_end|>"));
  std::string types;
  append(types, int32_t{1});
  append(types, int32_t{3});
  t.array("tokenizer.ggml.token_type", 5, 2, types);
  return t;
}

TEST(GgufVocab, KnowsWhatEndsAnAnswer) {
  auto t = small_vocab();
  t.u32("tokenizer.ggml.eos_token_id", 0).u32("tokenizer.ggml.padding_token_id", UINT32_MAX);
  std::string bytes = t.bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file);
  auto vocab = read_vocab(*file);
  ASSERT_TRUE(vocab) << vocab.why().text;
  EXPECT_EQ(vocab->eos, 0u);
  EXPECT_EQ(vocab->pad, std::nullopt);
  EXPECT_EQ(vocab->eog, (std::vector<uint32_t>{0, 1}));
}

TEST(GgufVocab, RefusesContradictions) {
  auto why = [](gguf_text t) {
    std::string bytes = t.bytes();
    auto file = parse(bytes);
    EXPECT_TRUE(file);
    auto vocab = read_vocab(*file);
    return vocab ? std::string("accepted") : vocab.why().text;
  };
  EXPECT_NE(why({}).find("has no vocabulary"), std::string::npos);
  EXPECT_NE(why(small_vocab().u32("tokenizer.ggml.bos_token_id", 2)).find("is 2, but there are 2"),
            std::string::npos);
  EXPECT_NE(why(small_vocab().array("tokenizer.ggml.scores", 6, 1, "1234")).find("2 tokens, but 1"),
            std::string::npos);
}

TEST(GgufVocab, ReadsPublishedVocabularies) {
  LETHE_NEEDS_VECTORS();
  auto file = gguf_file::open(test::vectors() / "tokenizers" / "ggml-vocab-llama-spm.gguf");
  ASSERT_TRUE(file) << file.why().text;
  auto vocab = read_vocab(*file);
  ASSERT_TRUE(vocab) << vocab.why().text;
  EXPECT_EQ(vocab->model, "llama");
  EXPECT_EQ(vocab->tokens.size(), 32000u);
  EXPECT_EQ(vocab->scores.back(), -31740.0f);
  EXPECT_EQ(vocab->types[0], 2);
  EXPECT_EQ(vocab->bos, 1u);
  EXPECT_EQ(vocab->add_bos, true);
}

}  // namespace
}  // namespace lethe
