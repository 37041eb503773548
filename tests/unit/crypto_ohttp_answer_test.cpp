#include "runtime/crypto/ohttp_answer.hpp"

#include "crypto_ohttp_samples.hpp"

namespace lethe {
namespace {

using namespace test;

constexpr size_t most = limits::chunk_plain_bytes_max;
constexpr auto whole = ohttp_form::whole, chunked = ohttp_form::chunked;

/// The same secret for both ends.
ohttp_exchange exchange_of(ohttp_form form, uint16_t aead = 1, uint32_t seed = 1) {
  const hpke_suite suite{.aead = aead};
  return {form, suite, random_bytes(32, seed),
          key_bytes(random_bytes(answer_nonce_bytes(suite), 5))};
}

bytes answer(ohttp_form form, bytes_view plain, std::vector<size_t> pieces = {}) {
  ohttp_answer_sealer sealer(exchange_of(form));
  if (pieces.empty()) pieces = {plain.size()};
  return sealed_in(sealer, plain, pieces);
}

outcome opened(ohttp_form form, bytes_view content, size_t piece = SIZE_MAX) {
  return opened_answer_of(ohttp_answer_opener(exchange_of(form)), content, piece);
}

TEST(OhttpAnswer, IsOpenedInPiecesOfAnySize) {
  const bytes plain = random_bytes(1000, 1);
  for (ohttp_form form : both_forms) {
    const bytes sealed =
        form == whole ? answer(form, plain) : answer(form, plain, {1, 63, 200, 700, 36});
    for (size_t piece = 1; piece < sealed.size() + 2; ++piece) {
      auto o = opened(form, sealed, piece);
      ASSERT_TRUE(o.whole) << piece;
      ASSERT_EQ(copy_of(as_bytes(o.plain)), plain) << piece;
    }
  }
}

TEST(OhttpAnswer, ItsNonceIsNewEachTimeAndAsLongAsItsSuiteSays) {
  for (uint16_t aead : {1, 2, 3})
    for (ohttp_form form : both_forms) {
      ohttp_answer_sealer a(exchange_of(form, aead)), b(exchange_of(form, aead));
      const size_t n = aead == 1 ? 16 : 32;
      const bytes first = sealed_in(a, as_bytes("same"), {4}),
                  second = sealed_in(b, as_bytes("same"), {4});
      EXPECT_EQ(first.size(), n + (form == chunked) + 4 + aead_tag_bytes);
      EXPECT_FALSE(std::ranges::equal(bytes_view(first).first(n), bytes_view(second).first(n)));
      EXPECT_FALSE(std::ranges::equal(bytes_view(first).subspan(n), bytes_view(second).subspan(n)));
    }
}

TEST(OhttpAnswer, EveryCutIsRefused) {
  for (ohttp_form form : both_forms) {
    const bytes sealed = form == whole ? answer(form, as_bytes("answer"))
                                       : answer(form, as_bytes("answer"), {4, 2, 0});
    for (size_t n = 0; n < sealed.size(); ++n)
      for (size_t piece : {size_t{1}, SIZE_MAX}) {
        auto o = opened(form, bytes_view(sealed).first(n), piece);
        ASSERT_FALSE(o.whole) << n;
        EXPECT_TRUE(std::string_view("answer").starts_with(o.plain)) << n;
        EXPECT_TRUE(form == chunked || o.plain.empty()) << n;
      }
  }
}

TEST(OhttpAnswer, EveryFlippedBitAndExtraByteIsRefused) {
  for (ohttp_form form : both_forms) {
    const bytes sealed = form == whole ? answer(form, as_bytes("answer"))
                                       : answer(form, as_bytes("answer"), {4, 2, 0});
    for (size_t i = 0; i < 8 * sealed.size(); ++i)
      ASSERT_FALSE(opened(form, flipped(sealed, i / 8, uint8_t(1 << i % 8))).whole) << i / 8;
    EXPECT_FALSE(opened(form, joined({sealed, as_bytes("x")})).whole);
    EXPECT_TRUE(opened(form, sealed).whole);
  }
}

TEST(OhttpAnswer, OfAnotherRequestSuiteOrFormIsRefused) {
  for (ohttp_form form : both_forms) {
    const bytes sealed = answer(form, as_bytes("answer"));
    auto with = [&](ohttp_exchange x) {
      return opened_answer_of(ohttp_answer_opener(std::move(x)), sealed).whole;
    };
    EXPECT_TRUE(with(exchange_of(form)));
    EXPECT_FALSE(with(exchange_of(form, 2)));
    EXPECT_FALSE(with(exchange_of(form, 1, 2))) << "another enc";
    EXPECT_FALSE(with(exchange_of(form == whole ? chunked : whole)));
    auto other = exchange_of(form);
    other.secret.data()[0] ^= std::byte{1};
    EXPECT_FALSE(with(std::move(other)));
  }
}

TEST(OhttpAnswer, ChunksHaveTheirPlaces) {
  // Frames of 21 bytes after the nonce of 16, and the final one of 17.
  const bytes sealed = answer(chunked, as_bytes("abcdefgh"), {4, 4, 0});
  bytes_view all = sealed, nonce = all.first(16), a = all.subspan(16, 21), b = all.subspan(37, 21),
             end = all.subspan(58);
  EXPECT_EQ(opened(chunked, joined({nonce, a, b, end})).plain, "abcdefgh");
  for (const bytes& wrong :
       {joined({nonce, b, a, end}), joined({nonce, a, end}), joined({nonce, b, end}),
        joined({nonce, end}), joined({nonce, a, a, b, end}), joined({nonce, a, b, b, end}),
        joined({nonce, a, b}), joined({nonce, a, b, end, end}), joined({nonce, a, b, end, a})}) {
    auto o = opened(chunked, wrong, 9);
    EXPECT_FALSE(o.whole);
    EXPECT_TRUE(std::string_view("abcdefgh").starts_with(o.plain));
  }
}

TEST(OhttpAnswer, AChunkThatIsNotFinalCannotBeMadeFinal) {
  const bytes sealed = answer(chunked, as_bytes("abcdefgh"), {4, 4});
  bytes cut = copy_of(bytes_view(sealed).first(37));
  cut[16] = std::byte{0};
  EXPECT_EQ(opened(chunked, cut).why, ohttp_refusal::sealed);
}

TEST(OhttpAnswer, ChunksHaveALimitAndOnlyTheFinalOneMayBeEmpty) {
  for (size_t size : {size_t{0}, size_t{1}, most - 1, most, most + 1})
    for (bool final : {false, true}) {
      ohttp_answer_sealer sealer(exchange_of(chunked));
      bytes out;
      const bool fine = size <= most && (size > 0 || final);
      EXPECT_EQ(bool(sealer.seal(bytes(size), final, out)), fine) << size;
      EXPECT_EQ(out.empty(), !fine);
      EXPECT_EQ(sealer.ended(), final || !fine);
      EXPECT_EQ(bool(sealer.seal(as_bytes("more"), true, out)), fine && !final);
      EXPECT_EQ(opened(chunked, out).whole, fine);
    }
  for (uint64_t length : {uint64_t{16}, uint64_t{most + aead_tag_bytes + 1}, varint_max}) {
    bytes theirs(16);
    append_varint(theirs, length);
    EXPECT_EQ(opened(chunked, joined({theirs, bytes(20)})).why, ohttp_refusal::format) << length;
  }
}

TEST(OhttpAnswer, OfKnownLengthHasOnePieceAndALimit) {
  ohttp_answer_sealer sealer(exchange_of(whole));
  bytes out = text_bytes("before");
  EXPECT_FALSE(sealer.seal(as_bytes("a piece"), false, out));
  EXPECT_FALSE(sealer.seal(as_bytes("all"), true, out));
  EXPECT_EQ(out, text_bytes("before"));
  const size_t room = limits::ohttp_whole_bytes_max - 16 - aead_tag_bytes;
  for (size_t size : {room, room + 1}) {
    ohttp_answer_sealer large(exchange_of(whole));
    EXPECT_EQ(bool(large.seal(bytes(size), true, out)), size == room);
  }
}

TEST(OhttpAnswer, OfKnownLengthHasALimitThatTheClientSets) {
  const bytes sealed = answer(whole, random_bytes(500, 1));
  for (size_t limit : {sealed.size() - 1, sealed.size(), sealed.size() + 1})
    for (size_t piece : {size_t{1}, size_t{100}, SIZE_MAX}) {
      ohttp_answer_opener opener(exchange_of(whole), limit);
      EXPECT_EQ(pushed(opener, sealed, piece).whole, limit >= sealed.size());
      EXPECT_EQ(opener.refusal() == ohttp_refusal::too_large, limit < sealed.size());
    }
  EXPECT_TRUE(opened_answer_of(ohttp_answer_opener(exchange_of(chunked), 1),
                               answer(chunked, random_bytes(500, 1)))
                  .whole)
      << "no more than a chunk is held";
}

TEST(OhttpAnswer, ACallThatFailsAddsNothing) {
  const bytes sealed = answer(chunked, as_bytes("abcdefgh"), {4, 4, 0});
  const bytes wrong = flipped(sealed, 40);
  ohttp_answer_opener at_once(exchange_of(chunked)), in_pieces(exchange_of(chunked));
  std::pmr::string plain = "kept";
  EXPECT_FALSE(at_once.push(wrong, plain));
  EXPECT_EQ(plain, "kept");
  EXPECT_TRUE(in_pieces.push(bytes_view(wrong).first(37), plain));
  EXPECT_FALSE(in_pieces.push(bytes_view(wrong).subspan(37), plain));
  EXPECT_EQ(plain, "keptabcd");
}

}  // namespace
}  // namespace lethe
