#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/unit/tokenizer_sample.hpp"

namespace {
// Counts every allocation of this program that goes past a memory resource.
std::atomic<uint64_t> heap_uses = 0;
}  // namespace
[[gnu::noinline]] void* operator new(size_t n) {
  heap_uses++;
  if (void* at = std::malloc(n)) return at;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t n, const std::nothrow_t&) noexcept {
  heap_uses++;
  return std::malloc(n ? n : 1);
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, size_t) noexcept { std::free(at); }

namespace lethe {
namespace {

using sample::decoded;
using sample::encoded;
using sample::ids;
using sample::made;
using sample::refusal;

// Byte-level, with the three sorts of added tokens and a template.
constexpr std::string_view chat = R"({
  "added_tokens":[
    {"id":10,"content":"<|s|>","special":true,"normalized":false},
    {"id":11,"content":"<|s|>x","special":true,"normalized":false},
    {"id":12,"content":"<tool>","special":false,"normalized":false},
    {"id":13,"content":"<mask>","special":true,"normalized":false,"lstrip":true,"rstrip":true},
    {"id":14,"content":"cat","special":false,"normalized":false,"single_word":true}],
  "normalizer":null,
  "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
  "post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},
    {"type":"TemplateProcessing",
     "single":[{"SpecialToken":{"id":"<|s|>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},
               {"SpecialToken":{"id":"<tool>","type_id":0}}],
     "special_tokens":{"<|s|>":{"ids":[10]},"<tool>":{"ids":[12]}}}]},
  "decoder":{"type":"ByteLevel"},
  "model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"t":3,"Ġ":4,"<":5,"|":6,"s":7,">":8,"x":9,
    "at":15},"merges":["a t"]}})";

TEST(AddedTokens, AreFoundWhereverTheyStandLongestFirst) {
  auto t = made(chat);
  encode_options plain{.add_special = false};
  EXPECT_EQ(encoded(t, "a<|s|>b", plain), (ids{0, 10, 1}));
  EXPECT_EQ(encoded(t, "<|s|>x<|s|>", plain), (ids{11, 10}));
  EXPECT_EQ(encoded(t, "<<tool>", plain), (ids{5, 12}));
  EXPECT_EQ(encoded(t, "", plain), ids{});
}

TEST(AddedTokens, TakeWhiteSpaceBesideThem) {
  auto t = made(chat);
  encode_options plain{.add_special = false};
  EXPECT_EQ(encoded(t, "a \n<mask>  b", plain), (ids{0, 13, 1}));
  EXPECT_EQ(encoded(t, "<|s|> <mask> <mask> <tool>", plain), (ids{10, 13, 13, 12}));
}

TEST(AddedTokens, MayHaveToBeWholeWords) {
  auto t = made(chat);
  encode_options plain{.add_special = false};
  EXPECT_EQ(encoded(t, "cat cat>", plain), (ids{14, 4, 14, 8}));
  EXPECT_EQ(encoded(t, "acat cata", plain), (ids{0, 2, 15, 4, 2, 15, 0}));
}

TEST(AddedTokens, StayTextWhenSpecialOnesAreNotParsed) {
  auto t = made(chat);
  encode_options text_only{.add_special = false, .parse_special = false};
  EXPECT_EQ(encoded(t, "<|s|>x", text_only), (ids{5, 6, 7, 6, 8, 9}));
  EXPECT_EQ(encoded(t, "<tool>", text_only), (ids{12}));
  EXPECT_EQ(decoded(t, encoded(t, "<|s|>x", text_only), true), "<|s|>x");
}

TEST(AddedTokens, AreLookedForInNormalizedTextIfTheySaySo) {
  sample::words w;
  w.vocab = {"<unk>", "a"};
  w.normalizer = R"({"type":"Lowercase"})";
  w.added_tokens = R"([{"id":2,"content":"Bo","normalized":true},
                       {"id":3,"content":"Xy","normalized":false}])";
  auto t = made(w.json());
  EXPECT_EQ(encoded(t, "ABoaBOXyabo"), (ids{1, 2, 1, 2, 3, 1, 2}));
  EXPECT_EQ(encoded(t, "xy"), (ids{0}));
}

TEST(AddedTokens, TakeTheIdThatTheModelGivesTheirText) {
  sample::words w;
  w.vocab = {"<unk>", "a", "<s>"};
  w.added_tokens = R"([{"id":9,"content":"<s>","special":true}])";
  auto t = made(w.json());
  EXPECT_EQ(encoded(t, "a<s>"), (ids{1, 2}));
  EXPECT_TRUE(t.is_special(2));
  EXPECT_EQ(t.vocab_size(), 3u);
}

TEST(AddedTokens, AreFoundInTheWhiteSpaceThatAnotherTook) {
  sample::words w;
  w.vocab = {"<unk>", "a"};
  w.added_tokens = R"([{"id":2,"content":"<x>","special":true,"rstrip":true},
                       {"id":3,"content":"\n","special":true}])";
  EXPECT_EQ(encoded(made(w.json()), "<x> \n a"), (ids{2, 3, 0}));
}

TEST(Tokenizer, PutsTheTemplateAroundATextOnlyWhenAsked) {
  auto t = made(chat, R"({"bos_token":"<|s|>","eos_token":{"content":"<tool>"}})");
  EXPECT_EQ(encoded(t, "a"), (ids{10, 0, 12}));
  EXPECT_EQ(encoded(t, "a", {.add_special = false}), (ids{0}));
  EXPECT_EQ(t.bos(), 10u);
  EXPECT_EQ(t.eos(), 12u);
  EXPECT_TRUE(t.adds_bos());
  EXPECT_TRUE(t.adds_eos());
  EXPECT_TRUE(t.is_special(10));
  EXPECT_FALSE(t.is_special(12));
  EXPECT_EQ(t.vocab_size(), 16u);
}

TEST(Tokenizer, FollowsTheFlagsOfItsConfig) {
  sample::words w;
  w.vocab = {"<unk>", "a", "<s>", "</s>"};
  constexpr std::string_view names = R"({"bos_token":"<s>","eos_token":"</s>")";
  auto with = [&](std::string_view rest) {
    return encoded(made(w.json(), std::string(names) + std::string(rest) + "}"), "a");
  };
  EXPECT_EQ(with(""), (ids{1}));
  EXPECT_EQ(with(R"(,"add_bos_token":true)"), (ids{2, 1}));
  EXPECT_EQ(with(R"(,"add_eos_token":true)"), (ids{1, 3}));
  w.post_processor = R"({"type":"BertProcessing","cls":["<s>",2],"sep":["</s>",3]})";
  EXPECT_EQ(with(R"(,"add_bos_token":true)"), (ids{2, 1, 3}));
  EXPECT_EQ(with(R"(,"add_bos_token":false)"), (ids{2, 1, 3}));
  EXPECT_EQ(with(R"(,"add_bos_token":false,"tokenizer_class":"LlamaTokenizerFast")"), (ids{1, 3}));
}

TEST(Tokenizer, KnowsItsChatTemplates) {
  EXPECT_EQ(made(chat, R"({"chat_template":"one"})").chat_template(), "one");
  auto t = made(chat, R"({"chat_template":[{"name":"default","template":"d"},
                          {"name":"tool_use","template":"t"}]})");
  EXPECT_EQ(t.chat_template(), "d");
  EXPECT_EQ(t.chat_template("tool_use"), "t");
  EXPECT_EQ(t.chat_template("none"), "");
}

TEST(Tokenizer, RefusesOrMendsTextThatIsNoUtf8) {
  sample::words w;
  w.vocab = {"<unk>", "a\uFFFD"};
  auto t = made(w.json());
  auto refused = t.encode("a\xFFsecret", {}, sample::heap());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.why().text, "tokenizer: the text is not UTF-8 at byte 1; send it as UTF-8");
  EXPECT_EQ(encoded(t, "a\xFF", {.mend_utf8 = true}), (ids{1}));
}

TEST(Tokenizer, ReadsMergesAsTextsAndAsPairs) {
  constexpr std::string_view model = R"({"model":{"type":"BPE","vocab":{"a":0," ":1,"a ":2},
      "merges":[["a"," "]]}})";
  EXPECT_EQ(encoded(made(model), "a a"), (ids{2, 0}));
}

TEST(Tokenizer, ReadsUnigramModels) {
  constexpr std::string_view json = R"({"model":{"type":"Unigram","unk_id":0,
      "vocab":[["<unk>",0],["▁a",-1],["▁",-2],["b",-3],["▁ab",-3.5]]},
      "pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"},
      "decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"}})";
  auto t = made(json);
  EXPECT_EQ(encoded(t, "a ab bzz"), (ids{1, 4, 2, 3, 0}));
  EXPECT_EQ(decoded(t, {1, 4, 2, 3}), "a ab b");
  EXPECT_EQ(t.unk(), 0u);
}

TEST(Tokenizer, RefusesWhatIsBrokenAndSaysWhere) {
  auto says = [](std::string_view json, std::string_view what) {
    EXPECT_NE(refusal(json).find(what), std::string::npos) << refusal(json);
  };
  says("", "not a JSON object");
  says("[1]", "not a JSON object");
  says("{}", "\"model\" is missing");
  says(R"({"model":{"type":"Magic"}})", "model Magic: not supported");
  says(R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})", "an id that is no number");
  says(R"({"model":{"type":"BPE","vocab":{"a":4000000000},"merges":[]}})", "at most 1048576");
  says(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}})", "merge 0 is not two tokens");
  says(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}})", "merge 0");
  says(R"({"model":{"type":"BPE","vocab":{},"merges":[],"dropout":0.1}})", "dropout");
  says(R"({"model":{"type":"BPE","vocab":{},"merges":[],"unk_token":"u"}})", "unk_token");
  says(R"({"model":{"type":"Unigram","unk_id":3,"vocab":[["a",0]]}})", "unk_id 3");
  says(R"({"model":{"type":"Unigram","vocab":[["a"]]}})", "entry 0");
  says(R"({"added_tokens":[{"id":0,"content":"b"}],
           "model":{"type":"BPE","vocab":{"a":0},"merges":[]}})",
       "two different texts");
  says(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"post_processor":
           {"type":"BertProcessing","cls":["a",0],"sep":["b",9]}})",
       "token 9 does not exist");
  says(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"post_processor":
           {"type":"TemplateProcessing","single":[],"special_tokens":{}}})",
       "text once");
  EXPECT_NE(refusal(chat, "{").find("tokenizer_config.json"), std::string::npos);
}

// Most published configurations say "no limit" with a number that no 64 bits hold.
TEST(Tokenizer, TakesNumbersWiderThan64Bits) {
  auto t = made(
      chat, R"({"model_max_length":1000000000000000019884624838656,"x":-99999999999999999999})");
  EXPECT_GT(t.vocab_size(), 0u);
}

// What derives from a text must live in the arena of its request.
TEST(Tokenizer, TakesAllMemoryForATextFromTheCaller) {
  auto t = made(chat);
  std::string text;
  for (int i = 0; i < 2'000; i++) text += "cat <|s|>acab \xF0\x9F\x98\x80 <mask> tat";
  std::vector<std::byte> room(8 << 20);
  std::pmr::monotonic_buffer_resource memory(room.data(), room.size(),
                                             std::pmr::null_memory_resource());
  std::pmr::string back(&memory);
  uint64_t before = heap_uses;
  {
    auto tokens = t.encode(text, {}, &memory);
    ASSERT_TRUE(tokens);
    back = t.decode(*tokens, false, &memory);
  }
  EXPECT_EQ(heap_uses, before);
  EXPECT_GT(back.size(), text.size() / 2);
}

}  // namespace
}  // namespace lethe
