#include <algorithm>
#include <random>

#include "tests/unit/tokenizer_sample.hpp"

namespace lethe {
namespace {

using sample::decoded;
using sample::ids;

// What these tokens become, pushed one by one; `pieces` gets what came out at each step.
std::string text_of(std::string_view decoder, std::vector<std::string> tokens,
                    std::vector<std::string>* pieces = nullptr) {
  sample::words w;
  w.decoder = decoder;
  for (auto& token : tokens)
    if (std::ranges::count(w.vocab, token) == 0) w.vocab.push_back(token);
  auto t = sample::made(w.json());
  ids all;
  for (auto& token : tokens) all.push_back(*t.id_of(token));
  std::string joined;
  stream_decoder stream(t, false, sample::heap());
  for (size_t i = 0; i <= all.size(); i++) {
    std::pmr::string piece;
    i < all.size() ? stream.push(all[i], piece) : stream.flush(piece);
    joined += piece;
    if (pieces) pieces->emplace_back(piece);
  }
  EXPECT_EQ(joined, decoded(t, all));
  return joined;
}

constexpr auto llama = R"({"type":"Sequence","decoders":[
    {"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},
    {"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})";

TEST(Decoder, ByteLevelTurnsCharactersIntoBytes) {
  EXPECT_EQ(text_of(R"({"type":"ByteLevel"})", {"Hello", "Ġé", "Ċ"}), "Hello \uFFFD\n");
  EXPECT_EQ(text_of(R"({"type":"ByteLevel"})", {"Ã", "©"}), "é");
  EXPECT_EQ(text_of(R"({"type":"ByteLevel"})", {"日本"}), "日本");  // no byte-level text
}

TEST(Decoder, LlamasChainRestoresSpacesAndBytes) {
  EXPECT_EQ(text_of(llama, {"▁Hello", "▁▁x"}), "Hello  x");
  EXPECT_EQ(text_of(llama, {"▁", "<0xE2>", "<0x82>", "<0xAC>", "a"}), "€a");
  EXPECT_EQ(text_of(llama, {"<0xE2>", "a", "<0x82>"}), "\uFFFDa\uFFFD");
  EXPECT_EQ(text_of(llama, {"<0x0A>", "<0xZZ>"}), "\n<0xZZ>");
}

TEST(Decoder, NeverEmitsHalfACharacter) {
  std::vector<std::string> pieces;
  text_of(llama, {"a", "<0xF0>", "<0x9F>", "<0xA6>", "<0x99>", "<0xE2>"}, &pieces);
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "", "", "", "\U0001F999", "", "\uFFFD"}));
}

TEST(Decoder, MetaspaceDropsTheFirstTokensSpaces) {
  EXPECT_EQ(
      text_of(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})", {"▁a", "▁b"}),
      "a b");
  EXPECT_EQ(
      text_of(R"({"type":"Metaspace","replacement":"▁","add_prefix_space":true})", {"▁▁a", "▁▁b"}),
      "a  b");
  EXPECT_EQ(
      text_of(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"never"})", {"▁a", "▁b"}),
      " a b");
}

TEST(Decoder, WordpieceJoinsContinuationsAndCleansUp) {
  EXPECT_EQ(text_of(R"({"type":"WordPiece","prefix":"##","cleanup":true})",
                    {"do", "##ing", "n't", ",", "ok", "."}),
            "doingn't, ok.");
  EXPECT_EQ(text_of(R"({"type":"WordPiece","prefix":"##","cleanup":false})", {"a", "."}), "a .");
}

TEST(Decoder, BpeDecoderEndsWordsButTheLast) {
  std::vector<std::string> pieces;
  EXPECT_EQ(text_of(R"({"type":"BPEDecoder","suffix":"</w>"})", {"a", "b</w>", "c</w>"}, &pieces),
            "ab c");
  EXPECT_EQ(pieces, (std::vector<std::string>{"", "a", "b ", "c"}));
}

TEST(Decoder, WithoutOneTokensAreJoinedBySpaces) { EXPECT_EQ(text_of("null", {"a", "b"}), "a b"); }

TEST(Decoder, StripsEachTokenOrTheWholeStream) {
  EXPECT_EQ(text_of(R"({"type":"Strip","content":"x","start":1,"stop":1})", {"xxaxx", "x"}), "xax");
  constexpr auto fused = R"({"type":"Sequence","decoders":[{"type":"Fuse"},
      {"type":"Strip","content":"é","start":2,"stop":2}]})";
  EXPECT_EQ(text_of(fused, {"é", "éé", "a", "é", "b", "éé", "é"}), "éaébé");
  EXPECT_EQ(text_of(fused, {"é", "éé", "é"}), "");
}

TEST(Decoder, ReplacesAcrossTokensOnceTheyAreFused) {
  constexpr auto text = R"({"type":"Sequence","decoders":[{"type":"Fuse"},
      {"type":"Replace","pattern":{"String":"abc"},"content":"-"}]})";
  EXPECT_EQ(text_of(text, {"xa", "b", "cab", "d", "ab"}), "x-abdab");
  constexpr auto regex = R"({"type":"Sequence","decoders":[{"type":"Fuse"},
      {"type":"Replace","pattern":{"Regex":"a+"},"content":"-"}]})";
  EXPECT_EQ(text_of(regex, {"xa", "ab", "a"}), "x-b-");
  EXPECT_EQ(text_of(R"({"type":"Replace","pattern":{"Regex":"a+"},"content":"-"})", {"xa", "ab"}),
            "x--b");
}

TEST(Decoder, RefusesWhatItDoesNotKnowAndOrdersWithoutSense) {
  sample::words w;
  w.decoder = R"({"type":"CTC"})";
  EXPECT_EQ(sample::refusal(w.json()), "tokenizer.json: decoder CTC: not supported");
  w.decoder = R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"WordPiece"}]})";
  EXPECT_NE(sample::refusal(w.json()).find("WordPiece after Fuse"), std::string::npos);
}

TEST(Decoder, AddedTokensPassTheDecoderLikeAnyOther) {
  sample::words w;
  w.vocab = {"<unk>", "Ġa"};
  w.decoder = R"({"type":"ByteLevel"})";
  w.added_tokens = R"([{"id":2,"content":"<｜end▁é｜>","special":true},
                       {"id":3,"content":"é","special":false}])";
  auto t = sample::made(w.json());
  EXPECT_EQ(decoded(t, {1, 2, 3, 1}), " a<｜end▁é｜>\uFFFD a");
  EXPECT_EQ(decoded(t, {1, 2, 3, 99}, true), " a\uFFFD");
}

TEST(Decoder, TellsTheBytesOfEachTokenInTheMiddleOfAText) {
  sample::words w;
  w.vocab = {"<unk>", "▁a", "<0xE2>", "b"};
  w.decoder = llama;
  auto t = sample::made(w.json());
  EXPECT_EQ(t.token_bytes(1), " a");
  EXPECT_EQ(t.token_bytes(2), "\xE2");
  EXPECT_EQ(t.token_text(2), "<0xE2>");
  EXPECT_EQ(t.token_bytes(4), "");
  w.decoder = R"({"type":"BPEDecoder","suffix":"b"})";
  EXPECT_EQ(sample::made(w.json()).token_bytes(3), " ");
}

TEST(StreamDecoder, PiecesJoinedAreTheWholeWhateverTheTokens) {
  std::vector<std::string> vocab = {"▁a", "é", "▁", "<0xE2>", "<0x82>", "<0xAC>", "<0xFF>", "ab"};
  std::mt19937 random(3);
  for (std::string_view decoder :
       {std::string_view(llama), std::string_view(R"({"type":"ByteLevel"})"),
        std::string_view(R"({"type":"BPEDecoder","suffix":"a"})")})
    for (int round = 0; round < 50; round++) {
      std::vector<std::string> tokens, pieces;
      for (uint32_t n = random() % 12; n > 0; n--) tokens.push_back(vocab[random() % vocab.size()]);
      text_of(decoder, tokens, &pieces);  // compares the two
      for (auto& piece : pieces) EXPECT_NE(piece.find_first_of("\x80") == 0, true);
    }
}

}  // namespace
}  // namespace lethe
