#include "runtime/crypto/seal_answer.hpp"

#include <bit>

#include "crypto_samples.hpp"
#include "runtime/crypto/big_endian.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/sealed_message.hpp"

namespace lethe {
namespace {

using namespace test;

constexpr uint32_t now = 12;
const hash32 token = sha256({as_bytes("a token")});

/// A request that one of its nodes has opened, and the client's end of the answer.
struct exchange {
  explicit exchange(size_t count = 1, size_t answers = 0, uint16_t aead = 1) : by(answers) {
    for (size_t i = 0; i < count; ++i) {
      keys.push_back(*node_key::make({.aead = aead}));
      known.push_back(keys.back().published());
    }
    auto sealed = seal_request(as_bytes("question"), known, now, token);
    message = sealed->message;
    client.emplace(std::move(sealed->answer));
    node.emplace(*open_request(keys[by], message, now, token, std::pmr::get_default_resource()));
    stream = copy_of(node->answer.first());
  }
  receipt right_receipt() const {
    return {.token_hash = token,
            .request_hash = node->request_hash,
            .release = sha256({as_bytes("release")}),
            .epoch = now,
            .arenas = 3,
            .bytes_wiped = 123456789};
  }
  void say(bytes_view plain) { ASSERT_TRUE(node->answer.seal(plain, false, stream)); }
  void end(const receipt& r, size_t zeroes = 0) {
    bytes last = copy_of(sign_receipt(keys[by], r));
    last.resize(last.size() + zeroes);
    ASSERT_TRUE(node->answer.seal(last, true, stream));
  }
  /// Some chunks and the end.
  void say_all() {
    say(as_bytes("one "));
    say(as_bytes("two "));
    say(as_bytes("three"));
    end(right_receipt());
  }

  size_t by;
  std::vector<node_key> keys;
  std::vector<node_public> known;
  bytes message, stream;
  std::optional<answer_opener> client;
  std::optional<opened_request> node;
};

/// What a client makes of a stream that comes `piece` bytes at a time.
struct outcome {
  std::pmr::string plain;
  bool whole = false;
};
outcome take(answer_opener& client, bytes_view stream, size_t piece) {
  outcome o;
  while (!stream.empty()) {
    bytes_view part = stream.first(std::min(piece, stream.size()));
    stream = stream.subspan(part.size());
    if (!client.push(part, o.plain)) break;
  }
  o.whole = bool(client.finish());
  return o;
}

TEST(SealAnswer, WhoeverAnswersIsFoundAndNamed) {
  for (uint16_t aead : {1, 2, 3})
    for (size_t count : {1, 2, 3})
      for (size_t by = 0; by < count; ++by)
        for (size_t piece : {1, 13, 100'000}) {
          exchange x(count, by, aead);
          x.say_all();
          EXPECT_EQ(x.client->node(), nullptr);
          std::pmr::string plain("before ");
          for (bytes_view left = x.stream; !left.empty();) {
            bytes_view part = left.first(std::min(piece, left.size()));
            ASSERT_TRUE(x.client->push(part, plain));
            left = left.subspan(part.size());
          }
          EXPECT_EQ(plain, "before one two three");
          ASSERT_NE(x.client->node(), nullptr);
          EXPECT_EQ(*x.client->node(), x.known[by]);
          auto r = x.client->finish();
          ASSERT_TRUE(r) << r.why().text;
          EXPECT_EQ(*r, x.right_receipt());
          EXPECT_FALSE(x.client->finish());
          EXPECT_FALSE(x.client->push(as_bytes("x"), plain));
        }
}

TEST(SealAnswer, AnyCutIsTruncation) {
  exchange length;
  length.say_all();
  for (size_t n = 0; n < length.stream.size(); ++n) {
    exchange x;
    x.say_all();
    auto o = take(*x.client, bytes_view(x.stream).first(n), 1 + n % 50);
    EXPECT_FALSE(o.whole) << n;
    EXPECT_TRUE(std::string_view("one two three").starts_with(o.plain)) << n;
  }
}

TEST(SealAnswer, AnyFlippedByteIsRefused) {
  exchange length(2, 1);
  length.say_all();
  for (size_t n = 0; n < length.stream.size(); ++n) {
    exchange x(2, 1);
    x.say_all();
    auto o = take(*x.client, flipped(x.stream, n, uint8_t(1 << n % 8)), 1000);
    EXPECT_FALSE(o.whole) << n;
    EXPECT_TRUE(std::string_view("one two three").starts_with(o.plain)) << n;
  }
}

TEST(SealAnswer, ReorderedAndMissingChunksAreRefused) {
  for (auto order : {std::vector<int>{1, 0, 2}, {0, 2}, {0, 0, 1, 2}, {2, 0, 1}, {0, 1, 0, 2}}) {
    exchange x;
    std::vector<bytes> chunks(3);
    for (size_t i = 0; i < 3; ++i)
      ASSERT_TRUE(x.node->answer.seal(as_bytes("c"), false, chunks[i]));
    bytes last, stream = x.stream;
    ASSERT_TRUE(x.node->answer.seal(sign_receipt(x.keys[0], x.right_receipt()), true, last));
    for (int i : order) stream = joined({stream, chunks[size_t(i)]});
    EXPECT_FALSE(take(*x.client, joined({stream, last}), 1000).whole);
  }
}

TEST(SealAnswer, AnAnswerToAnotherRequestIsRefused) {
  exchange x, y;
  y.say_all();
  auto o = take(*x.client, y.stream, 1000);
  EXPECT_FALSE(o.whole);
  EXPECT_EQ(o.plain, "");
}

/// An answer of the right candidate whose first chunk has this plaintext.
bytes first_chunk_says(const exchange& x, bytes_view plain, bool final) {
  auto m = sealed_message::parse(x.message);
  const seal_entry& e = m->entries[x.by];
  auto hpke = hpke_receiver::make(m->suite, x.keys[x.by].seal_key(), e.enc, m->info(e.node_id));
  key_bytes secret = hpke->keys().export_key(as_bytes(answer_label), 16), nonce(bytes(16));
  chunk_sealer sealer(m->suite.cipher(), joined({e.enc, nonce.view()}), secret.view());
  bytes out = copy_of(nonce.view());
  EXPECT_TRUE(sealer.seal(plain, final, out));
  return out;
}

TEST(SealAnswer, WhoIsNamedMustBeWhoSealed) {
  exchange x(2, 0);
  std::pmr::string plain("kept");
  bytes_view right = x.known[0].id, other = x.known[1].id;
  struct {
    bytes_view name;
    bool good;
  } cases[] = {{right, true}, {other, false}, {right.first(31), false}, {as_bytes("x"), false}};
  for (const auto& c : cases) {
    exchange fresh(2, 0);
    bytes name = copy_of(c.name);
    if (c.good) name = copy_of(fresh.known[0].id);
    EXPECT_EQ(bool(fresh.client->push(first_chunk_says(fresh, name, false), plain)), c.good);
    EXPECT_EQ(plain, "kept");
  }
  exchange named_other(2, 0);
  const bytes wrong = first_chunk_says(named_other, named_other.known[1].id, false);
  auto refused = named_other.client->push(wrong, plain);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.why().text.find("not the one that sealed it"), std::string::npos);
}

TEST(SealAnswer, AnAnswerOfNothingButAnEndIsRefused) {
  exchange x;
  EXPECT_FALSE(x.node->answer.seal(sign_receipt(x.keys[0], x.right_receipt()), true, x.stream));
  std::pmr::string plain;
  const bytes only = first_chunk_says(x, joined({x.known[0].id}), true);
  EXPECT_TRUE(x.client->push(only, plain));
  EXPECT_FALSE(x.client->finish());
}

TEST(SealAnswer, KeepsTheLimitOfAChunk) {
  constexpr size_t most = limits::chunk_plain_bytes_max;
  constexpr size_t first = most - answer_sealer::first_chunk_bytes_taken;
  exchange x;
  EXPECT_FALSE(x.node->answer.seal(bytes(first + 1), false, x.stream));
  x.say(bytes(first, std::byte{'a'}));
  EXPECT_FALSE(x.node->answer.seal(bytes(most + 1), false, x.stream));
  EXPECT_FALSE(x.node->answer.seal({}, false, x.stream)) << "empty, and not final";
  x.say(bytes(most, std::byte{'a'}));
  x.end(x.right_receipt());
  EXPECT_TRUE(x.node->answer.ended());
  EXPECT_FALSE(x.node->answer.seal(as_bytes("more"), false, x.stream));
  auto o = take(*x.client, x.stream, 4096);
  EXPECT_TRUE(o.whole);
  EXPECT_EQ(o.plain, std::pmr::string(first + most, 'a'));
}

/// The same with a size: the client's, and the node's if that is another.
struct sized_exchange : exchange {
  explicit sized_exchange(uint32_t wanted = 256) : sized_exchange(wanted, wanted) {}
  sized_exchange(uint32_t wanted, uint32_t made) {
    auto sealed = seal_request(as_bytes("question"), known, now, token, wanted);
    message = sealed->message;
    client.emplace(std::move(sealed->answer));
    node.emplace(
        *open_request(keys[0], message, now, token, std::pmr::get_default_resource(), made));
    stream = copy_of(node->answer.first());
  }
  /// A chunk of that plaintext, in a stream that nobody pads.
  void say_raw(uint16_t length, bytes_view rest, size_t chunk = 256) {
    bytes plain(answer_sealer::length_bytes);
    store_be(length, plain.data());
    plain = joined({plain, rest});
    plain.resize(chunk - (named ? 0 : answer_sealer::first_chunk_bytes_taken));
    named = true;
    say(plain);
  }
  void end_raw(size_t chunk = 256) { end(right_receipt(), chunk - receipt_bytes); }
  void pad() {
    while (!node->answer.may_end()) say({});
  }
  std::string refused() {
    std::pmr::string plain;
    auto pushed = client->push(stream, plain);
    if (!pushed) return pushed.why().text;
    auto finished = client->finish();
    return finished ? "" : finished.why().text;
  }
  bool named = false;
};

/// What each frame of a stream takes, the nonce in front of it aside.
std::vector<size_t> chunk_sizes(bytes_view stream, size_t nonce = 16) {
  std::vector<size_t> sizes;
  chunk_frames frames;
  stream = stream.subspan(nonce);
  while (true) {
    auto chunk = frames.next(stream);
    EXPECT_TRUE(chunk);
    if (!chunk || chunk->empty()) break;
    sizes.push_back(chunk->size());
  }
  auto last = frames.finish();
  EXPECT_TRUE(last);
  if (last) sizes.push_back(last->size());
  return sizes;
}

TEST(ShapedAnswer, AllChunksHaveOneSizeAndAPowerOfTwoIsTheirNumber) {
  for (uint32_t size : {256u, 2048u, 8192u})
    for (size_t pieces = 1; pieces < 20; ++pieces) {
      sized_exchange x(size);
      std::pmr::string said;
      for (size_t i = 0; i < pieces; ++i) {
        std::string piece(i % 3 == 0 ? x.node->answer.room() : i, char('a' + i));
        x.say(as_bytes(piece));
        said += piece;
      }
      x.pad();
      x.end(x.right_receipt());
      EXPECT_EQ(chunk_sizes(x.stream),
                std::vector<size_t>(std::bit_ceil(pieces + 1), size + aead_tag_bytes));
      auto o = take(*x.client, x.stream, 1 + pieces * 100);
      EXPECT_TRUE(o.whole);
      EXPECT_EQ(o.plain, said);
    }
}

/// The control of the test above.
TEST(ShapedAnswer, WithoutAShapeChunksAreAsLargeAsWhatIsSaid) {
  exchange x;
  x.say_all();
  EXPECT_EQ(chunk_sizes(x.stream),
            (std::vector<size_t>{32 + 4 + 16, 4 + 16, 5 + 16, receipt_bytes + 16}));
}

TEST(ShapedAnswer, AChunkHoldsWhatItsSizeLeavesAndNoMore) {
  sized_exchange x;
  EXPECT_EQ(x.node->answer.room(), 256u - 2 - 32);
  EXPECT_FALSE(x.node->answer.seal(bytes(256 - 2 - 32 + 1), false, x.stream));
  x.say(bytes(256 - 2 - 32, std::byte{'a'}));
  EXPECT_EQ(x.node->answer.room(), 256u - 2);
  EXPECT_FALSE(x.node->answer.seal(bytes(256 - 2 + 1), false, x.stream));
  x.say(bytes(256 - 2, std::byte{'a'}));
  x.say({});
  EXPECT_FALSE(x.node->answer.seal(bytes(257), true, x.stream));
  x.end(x.right_receipt());
  EXPECT_EQ(x.refused(), "");
}

TEST(ShapedAnswer, EndsAtAPowerOfTwoOnly) {
  sized_exchange x;
  const auto last = copy_of(sign_receipt(x.keys[0], x.right_receipt()));
  for (size_t sealed = 0; sealed < 20; ++sealed) {
    const bool may = sealed == 1 || sealed == 3 || sealed == 7 || sealed == 15;
    EXPECT_EQ(x.node->answer.may_end(), may) << sealed;
    bytes nowhere;
    if (!may) {
      EXPECT_FALSE(x.node->answer.seal(last, true, nowhere)) << sealed;
    }
    x.say({});
  }
}

TEST(ShapedAnswer, AnyCutIsTruncation) {
  sized_exchange whole;
  for (const char* word : {"one ", "two ", "three"}) whole.say(as_bytes(word));
  whole.end(whole.right_receipt());
  const size_t chunk = 256 + aead_tag_bytes + 2;
  for (size_t n = 0; n < whole.stream.size(); n += n % chunk < 20 ? 1 : 7) {
    sized_exchange x;
    for (const char* word : {"one ", "two ", "three"}) x.say(as_bytes(word));
    x.end(x.right_receipt());
    auto o = take(*x.client, bytes_view(x.stream).first(n), 1 + n % 50);
    EXPECT_FALSE(o.whole) << n;
    EXPECT_TRUE(std::string_view("one two three").starts_with(o.plain)) << n;
  }
}

TEST(ShapedAnswer, AChunkOfAnotherSizeIsRefused) {
  for (size_t other : {255, 257, 512, 40}) {
    sized_exchange x(256, 0);
    x.say_raw(1, as_bytes("a"), other);
    EXPECT_EQ(x.refused(), fmt::format("sealed answer: chunk 0 holds {} bytes; the policy has 256 "
                                       "for every chunk",
                                       other));
    sized_exchange y(256, 0);
    y.say_raw(1, as_bytes("a"));
    y.end_raw(std::max(other, receipt_bytes));
    EXPECT_NE(y.refused().find("chunk 1 holds"), std::string::npos);
  }
  sized_exchange x(256, 512);
  x.say(as_bytes("a"));
  x.end(x.right_receipt());
  EXPECT_NE(x.refused().find("chunk 0 holds 512 bytes"), std::string::npos);
  sized_exchange same(256, 0);  // the control: as these are made, but of that size
  same.say_raw(1, as_bytes("a"));
  same.end_raw();
  EXPECT_EQ(same.refused(), "");
}

TEST(ShapedAnswer, ANumberThatIsNoPowerOfTwoIsRefused) {
  for (size_t chunks = 2; chunks < 20; ++chunks) {
    sized_exchange x(256, 0);
    for (size_t i = 1; i < chunks; ++i) x.say_raw(1, as_bytes("a"));
    x.end_raw();
    const bool good = chunks == 2 || chunks == 4 || chunks == 8 || chunks == 16;
    EXPECT_EQ(
        x.refused(),
        good ? ""
             : fmt::format("sealed answer: {} chunks; the policy wants a power of two", chunks));
  }
}

TEST(ShapedAnswer, DataBehindThePaddingIsRefused) {
  for (size_t at : {size_t{3}, size_t{100}, size_t{220}}) {
    sized_exchange x(256, 0);
    bytes rest(222);
    rest[at - 2] = std::byte{1};
    x.say_raw(1, rest);
    EXPECT_EQ(x.refused(), "sealed answer: in chunk 0 data follows the padding") << at;
    sized_exchange y(256, 0);
    y.say_raw(uint16_t(at - 1), rest);  // the control: it is content
    y.end_raw();
    EXPECT_EQ(y.refused(), "") << at;
  }
}

TEST(ShapedAnswer, AChunkHoldsNoMoreThanItSays) {
  for (uint16_t length : {222, 223, 65535}) {
    sized_exchange x(256, 0);
    x.say_raw(length, {});
    x.end_raw();
    EXPECT_EQ(x.refused(), length == 222
                               ? ""
                               : fmt::format("sealed answer: chunk 0 says that it holds {} "
                                             "bytes; 222 are the most",
                                             length));
  }
}

TEST(ShapedAnswer, HasLimits) {
  for (uint32_t bytes : {256u, 257u, 8191u, 8192u}) {
    EXPECT_TRUE((answer_shape{bytes, 0}.valid())) << bytes;
    EXPECT_TRUE((answer_shape{bytes, 20}.valid())) << bytes;
  }
  for (uint32_t bytes : {1u, 255u, 8193u}) EXPECT_FALSE((answer_shape{bytes, 0}.valid())) << bytes;
  EXPECT_TRUE((answer_shape{0, 0}.valid()));
  EXPECT_FALSE((answer_shape{0, 20}.valid()));
  EXPECT_EQ((answer_shape{0, 0}.mode()), shape_mode::off);
  EXPECT_EQ((answer_shape{256, 0}.mode()), shape_mode::size);
  EXPECT_EQ((answer_shape{256, 1}.mode()), shape_mode::size_tick);
  static_assert(receipt_bytes <= answer_shape::chunk_bytes_least);
}

TEST(Receipt, MustBeTheNodesAndForThisRequest) {
  auto verdict = [](auto change) {
    exchange x(2, 0);
    receipt r = x.right_receipt();
    bytes last = change(x, r);
    x.say(as_bytes("answer"));
    EXPECT_TRUE(x.node->answer.seal(last, true, x.stream));
    return take(*x.client, x.stream, 1000).whole;
  };
  auto sign = [](exchange& x, const receipt& r) { return copy_of(sign_receipt(x.keys[0], r)); };
  EXPECT_TRUE(verdict(sign));
  EXPECT_FALSE(
      verdict([](exchange& x, receipt& r) { return copy_of(sign_receipt(x.keys[1], r)); }));
  EXPECT_FALSE(verdict([&](exchange& x, receipt& r) {
    r.token_hash[0] ^= std::byte{1};
    return sign(x, r);
  }));
  EXPECT_FALSE(verdict([&](exchange& x, receipt& r) {
    r.request_hash[0] ^= std::byte{1};
    return sign(x, r);
  }));
  EXPECT_FALSE(verdict([&](exchange& x, receipt& r) {
    r.epoch += 1;
    return sign(x, r);
  }));
  EXPECT_FALSE(verdict([](exchange&, receipt&) { return bytes{}; }));
  EXPECT_TRUE(verdict([&](exchange& x, receipt& r) { return joined({sign(x, r), bytes(50)}); }));
  EXPECT_FALSE(verdict([&](exchange& x, receipt& r) {
    return joined({sign(x, r), as_bytes("content")});
  }));
}

TEST(Receipt, IsSignedWhole) {
  node_key key = *node_key::make(), other = *node_key::make();
  receipt r{.token_hash = sha256({as_bytes("t")}),
            .request_hash = sha256({as_bytes("r")}),
            .release = sha256({as_bytes("l")}),
            .epoch = 0x01020304,
            .arenas = 5,
            .bytes_wiped = 0x0102030405060708};
  const bytes b = copy_of(sign_receipt(key, r));
  EXPECT_EQ(*verify_receipt(b, key.published().sigpk), r);
  EXPECT_FALSE(verify_receipt(b, other.published().sigpk));
  EXPECT_EQ(copy_of(bytes_view(b).subspan(96, 16)), from_hex("01020304000000050102030405060708"));
  for (size_t i = 0; i < b.size(); ++i) {
    EXPECT_FALSE(verify_receipt(flipped(b, i), key.published().sigpk)) << i;
    EXPECT_FALSE(verify_receipt(bytes_view(b).first(i), key.published().sigpk)) << i;
  }
  // Signed without the label, it is nobody's receipt.
  auto bare = key.sign(bytes_view(b).first(112));
  EXPECT_FALSE(verify_receipt(joined({bytes_view(b).first(112), bare}), key.published().sigpk));
}

TEST(Ed25519, AgreesWithRfc8032) {  // section 7.1, test 2
  auto key = signing_key::from_private(
      from_hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
  ASSERT_TRUE(key);
  EXPECT_EQ(copy_of(key->public_key()),
            from_hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"));
  EXPECT_EQ(copy_of(key->sign(from_hex("72"))),
            from_hex("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                     "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"));
  EXPECT_FALSE(signing_key::from_private(bytes(31)));
}

}  // namespace
}  // namespace lethe
