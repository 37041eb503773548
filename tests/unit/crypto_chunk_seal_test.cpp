#include "runtime/crypto/chunk_seal.hpp"

#include "crypto_samples.hpp"
#include "runtime/base/varint.hpp"
#include "runtime/crypto/chunk_frames.hpp"
#include "runtime/crypto/hpke.hpp"

namespace lethe {
namespace {

using namespace test;

constexpr size_t most = limits::chunk_plain_bytes_max;
const bytes salt = text_bytes("salt"), secret = text_bytes("a secret of 16 b");
const aead_id all_ids[] = {aead_id::aes_128_gcm, aead_id::aes_256_gcm, aead_id::chacha20_poly1305};

bytes sealed_stream(aead_id id, const std::vector<bytes>& chunks) {
  chunk_sealer sealer(id, salt, secret);
  bytes out;
  for (size_t i = 0; i < chunks.size(); ++i)
    EXPECT_TRUE(sealer.seal(chunks[i], i + 1 == chunks.size(), out));
  return out;
}

/// What opens before an error, and whether the stream came to its end. `piece` bytes at a time.
struct opened_stream {
  std::pmr::string plain;
  size_t chunks = 0;
  bool whole = false;
};
opened_stream open_stream(aead_id id, bytes_view content, size_t piece, bytes_view s = salt,
                          bytes_view k = secret) {
  opened_stream o;
  chunk_frames frames;
  chunk_opener opener(id, s, k);
  while (!content.empty()) {
    bytes_view part = content.first(std::min(piece, content.size()));
    content = content.subspan(part.size());
    while (true) {
      auto chunk = frames.next(part);
      if (!chunk) return o;
      if (chunk->empty()) break;
      if (!opener.open(*chunk, false, o.plain)) return o;
      ++o.chunks;
    }
    EXPECT_TRUE(part.empty());
  }
  auto last = frames.finish();
  o.whole = last && opener.open(*last, true, o.plain);
  o.chunks += o.whole;
  return o;
}

TEST(Varint, AgreesWithRfc9000AndWritesTheShortest) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  auto file = parser.load((protocol_vectors() / "quic-varint-rfc9000.json").string());
  for (simdjson::dom::element v : file["vectors"].get_array()) {
    bytes b = hex_of(v, "hex");
    EXPECT_EQ(varint_bytes_told(b[0]), b.size());
    EXPECT_EQ(varint_value(b), std::stoull(std::string(std::string_view(v["value"]))));
  }
  for (uint64_t n : {0ull, 63ull, 64ull, 16383ull, 16384ull, (1ull << 30) - 1, 1ull << 30,
                     (unsigned long long)varint_max}) {
    bytes b;
    append_varint(b, n);
    EXPECT_EQ(varint_value(b), n);
    EXPECT_EQ(b.size(), varint_bytes(n));
    EXPECT_EQ(b.size(), varint_bytes_told(b[0]));
  }
}

TEST(ChunkSeal, OpensThePublishedResponses) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  size_t tried = 0;
  auto expect = [&tried](simdjson::dom::element v, bytes_view response) {
    const auto id = aead_id(uint64_t(v["aead_id"]));
    const size_t n = std::max(aead_nonce_bytes, aead_key_bytes(id));
    const bytes enc = hex_of(v, "client_ephemeral_public_key");
    for (size_t piece : {size_t{1}, size_t{7}, response.size()}) {
      auto o = open_stream(id, response.subspan(n), piece, joined({enc, response.first(n)}),
                           hex_of(v, "response_secret"));
      EXPECT_TRUE(o.whole);
      EXPECT_EQ(copy_of(as_bytes(o.plain)), hex_of(v, "bhttp_response"));
      EXPECT_EQ(o.chunks, v["response_chunk_lengths"].get_array().size());
    }
    ++tried;
  };
  auto one = parser.load((protocol_vectors() / "ohttp-chunked.json").string());
  expect(one.value(), hex_of(one.value(), "encapsulated_response"));
  auto more = parser.load((protocol_vectors() / "ohttp-extra.json").string());
  for (simdjson::dom::element v : more["vectors"].get_array())
    if (bool(v["chunked"]) && v["bhttp_response"].is_string())
      expect(v, hex_of(v, "encapsulated_response"));
  EXPECT_EQ(tried, 4u);
}

TEST(ChunkFrames, CutThePublishedRequestsForHpke) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  auto file = parser.load((protocol_vectors() / "ohttp-chunked.json").string());
  simdjson::dom::element v = file.value();
  auto key = hpke_key::from_private(0x20, hex_of(v, "server_private_key"));
  const bytes request = hex_of(v, "encapsulated_request");
  bytes_view enc = bytes_view(request).subspan(7, 32), chunks = bytes_view(request).subspan(39);
  auto receiver = hpke_receiver::make({}, *key, enc, hex_of(v, "info"));
  ASSERT_TRUE(receiver);
  bytes plain(request.size());
  size_t size = 0;
  chunk_frames frames;
  for (auto c = frames.next(chunks); c && !c->empty(); c = frames.next(chunks)) {
    ASSERT_TRUE(receiver->open({}, *c, plain.data() + size));
    size += c->size() - aead_tag_bytes;
  }
  auto last = frames.finish();
  ASSERT_TRUE(last);
  ASSERT_TRUE(receiver->open(as_bytes("final"), *last, plain.data() + size));
  plain.resize(size + last->size() - aead_tag_bytes);
  EXPECT_EQ(plain, hex_of(v, "bhttp_request"));
  EXPECT_EQ(
      copy_of(receiver->keys().export_key(as_bytes("message/bhttp chunked response"), 16).view()),
      hex_of(v, "response_secret"));
}

TEST(ChunkSeal, OpensInPiecesOfAnySize) {
  const std::vector<bytes> chunks = {random_bytes(1, 1), random_bytes(63, 2), random_bytes(200, 3),
                                     random_bytes(most, 4), random_bytes(5, 5)};
  const bytes all = joined({chunks[0], chunks[1], chunks[2], chunks[3], chunks[4]});
  for (aead_id id : all_ids) {
    const bytes content = sealed_stream(id, chunks);
    EXPECT_EQ(*plain_bytes_in(content), all.size());
    for (size_t piece = 1; piece < 320; ++piece) {
      auto o = open_stream(id, content, piece);
      ASSERT_TRUE(o.whole) << piece;
      ASSERT_EQ(copy_of(as_bytes(o.plain)), all) << piece;
    }
    EXPECT_TRUE(open_stream(id, content, content.size()).whole);
  }
}

TEST(ChunkSeal, AnyCutIsTruncation) {
  const bytes content =
      sealed_stream(aead_id::aes_128_gcm, {text_bytes("one"), text_bytes("two"), bytes{}});
  for (size_t n = 0; n < content.size(); ++n)
    for (size_t piece : {size_t{1}, size_t{1000}}) {
      auto o = open_stream(aead_id::aes_128_gcm, bytes_view(content).first(n), piece);
      EXPECT_FALSE(o.whole) << n;
      EXPECT_TRUE(std::string_view("onetwo").starts_with(o.plain)) << n;
    }
  EXPECT_TRUE(open_stream(aead_id::aes_128_gcm, content, 1000).whole);
}

TEST(ChunkSeal, OrderCopiesAndPromotionAreRefused) {
  for (aead_id id : all_ids) {
    chunk_sealer sealer(id, salt, secret);
    bytes a, b, last;
    ASSERT_TRUE(sealer.seal(as_bytes("aa"), false, a));
    ASSERT_TRUE(sealer.seal(as_bytes("bb"), false, b));
    ASSERT_TRUE(sealer.seal(as_bytes("cc"), true, last));
    EXPECT_EQ(open_stream(id, joined({a, b, last}), 100).plain, "aabbcc");
    EXPECT_EQ(open_stream(id, joined({b, a, last}), 100).plain, "");
    EXPECT_EQ(open_stream(id, joined({a, a, b, last}), 100).plain, "aa");
    EXPECT_EQ(open_stream(id, joined({a, last}), 100).plain, "aa");
    // A chunk that is not final, behind the frame of a final one; and the other way round.
    const std::byte zero{}, length{18};
    EXPECT_FALSE(open_stream(id, joined({a, {&zero, 1}, bytes_view(b).subspan(1)}), 100).whole);
    auto demoted = open_stream(id, joined({a, b, {&length, 1}, bytes_view(last).subspan(1)}), 100);
    EXPECT_EQ(demoted.plain, "aabb");
  }
}

TEST(ChunkSeal, KeepsItsLimits) {
  for (size_t n : {most - 1, most}) {
    chunk_sealer s(aead_id::aes_128_gcm, salt, secret);
    bytes out;
    EXPECT_TRUE(s.seal(bytes(n), false, out));
    EXPECT_TRUE(s.seal(bytes(n), true, out));
    EXPECT_TRUE(open_stream(aead_id::aes_128_gcm, out, 5000).whole);
  }
  chunk_sealer s(aead_id::aes_128_gcm, salt, secret);
  bytes out;
  EXPECT_FALSE(s.seal(bytes(most + 1), false, out));
  EXPECT_FALSE(s.seal(bytes(most + 1), true, out));
  EXPECT_FALSE(s.seal(bytes(most), false, out, as_bytes("x")));
  EXPECT_FALSE(s.seal({}, false, out));
  EXPECT_TRUE(out.empty()) << "a refusal writes nothing";
  EXPECT_TRUE(s.seal({}, true, out));
  EXPECT_TRUE(s.ended());
  EXPECT_FALSE(s.seal(as_bytes("x"), false, out));
}

/// A stream in which one chunk has this plaintext, sealed as a peer without our limits would.
bytes foreign_stream(size_t plain, bool final) {
  auto keys = chunk_keys::sealing(aead_id::aes_128_gcm, salt, secret);
  bytes out, text(plain);
  append_varint(out, final ? 0 : plain + aead_tag_bytes);
  out.resize(out.size() + plain + aead_tag_bytes);
  keys.cipher.seal(keys.nonces.current(), final ? as_bytes("final") : bytes_view{}, {text},
                   out.data() + out.size() - plain - aead_tag_bytes);
  return out;
}

TEST(ChunkFrames, RefuseWhatIsTooLongOrEmptyBeforeItIsOpened) {
  for (size_t piece : {size_t{1}, size_t{1} << 20}) {
    auto chunks = [piece](size_t plain, bool final) {
      return open_stream(aead_id::aes_128_gcm, foreign_stream(plain, final), piece).chunks;
    };
    EXPECT_EQ(chunks(most, false), 1u);
    EXPECT_EQ(chunks(most + 1, false), 0u);
    EXPECT_EQ(chunks(most, true), 1u);
    EXPECT_EQ(chunks(most + 1, true), 0u);
    EXPECT_EQ(chunks(1, false), 1u);
    EXPECT_EQ(chunks(0, false), 0u) << "correctly sealed, and still refused";
    EXPECT_EQ(chunks(0, true), 1u);
  }
  chunk_frames frames;
  bytes huge = from_hex("ffffffffffffffff");
  bytes_view content = huge;
  EXPECT_FALSE(frames.next(content));
}

TEST(ChunkFrames, TakeLongerLengthsThanNeeded) {
  bytes content = sealed_stream(aead_id::aes_128_gcm, {text_bytes("a"), text_bytes("b")});
  ASSERT_EQ(uint8_t(content[0]), 17);
  bytes longer = joined({from_hex("c000000000000011"), bytes_view(content).subspan(1, 17),
                         from_hex("80000000"), bytes_view(content).subspan(19)});
  for (size_t piece : {1, 3, 100}) {
    auto o = open_stream(aead_id::aes_128_gcm, longer, piece);
    EXPECT_TRUE(o.whole);
    EXPECT_EQ(o.plain, "ab");
  }
}

TEST(ChunkSeal, NoMemoryIsARefusal) {
  std::byte room[256];
  std::pmr::monotonic_buffer_resource memory(room, sizeof room, std::pmr::null_memory_resource());
  std::pmr::string out(&memory);
  chunk_opener opener(aead_id::aes_128_gcm, salt, secret);
  bytes content = foreign_stream(1000, true);
  EXPECT_FALSE(opener.open(bytes_view(content).subspan(1), true, out));
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace lethe
