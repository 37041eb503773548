#include "runtime/crypto/ohttp_request.hpp"

#include "crypto_ohttp_samples.hpp"

namespace lethe {
namespace {

using namespace test;

static_assert(!std::is_copy_constructible_v<ohttp_request_sealer> &&
              !std::is_copy_constructible_v<ohttp_exchange> &&
              !std::is_copy_constructible_v<ohttp_keys>);

constexpr size_t most = limits::chunk_plain_bytes_max;
constexpr auto whole = ohttp_form::whole, chunked = ohttp_form::chunked;

TEST(OhttpRequest, GoesThereAndBack) {
  for (uint16_t aead : {1, 2, 3})
    for (ohttp_form form : both_forms)
      for (size_t size : {size_t{0}, size_t{1}, most - 1, most}) {
        gateway g(aead);
        auto sealer = g.sealer(form);
        const bytes plain = random_bytes(size, uint32_t(size));
        const bytes sealed = sealed_in(sealer, plain, {size});
        auto o = opened_request_of(g.keys, form, sealed, 1000);
        ASSERT_TRUE(o.whole);
        EXPECT_EQ(copy_of(as_bytes(o.plain)), plain);
        ohttp_answer_sealer back(*std::move(o.exchange));
        auto answer = opened_answer_of(*sealer.answer(), sealed_in(back, plain, {size}), 1000);
        ASSERT_TRUE(answer.whole);
        EXPECT_EQ(copy_of(as_bytes(answer.plain)), plain);
      }
}

TEST(OhttpRequest, OfKnownLengthIsOneCall) {
  gateway g;
  const bytes plain = random_bytes(100'000, 1);
  auto sealed = seal_ohttp_request(g.known, plain);
  ASSERT_TRUE(sealed);
  EXPECT_EQ(sealed->answer.form(), whole);
  auto o = opened_request_of(g.keys, whole, sealed->message);
  EXPECT_EQ(copy_of(as_bytes(o.plain)), plain);
  ohttp_answer_sealer back(*std::move(o.exchange));
  bytes answer;
  ASSERT_TRUE(back.seal(as_bytes("so it is"), true, answer));
  EXPECT_EQ(opened_answer_of(std::move(sealed->answer), answer).plain, "so it is");
}

TEST(OhttpRequest, EveryCutIsRefused) {
  for (ohttp_form form : both_forms) {
    const bytes sealed = form == whole ? gateway().request(form, as_bytes("question"))
                                       : gateway().request(form, as_bytes("question"), {4, 4, 0});
    for (size_t n = 0; n < sealed.size(); ++n)
      for (size_t piece : {size_t{1}, SIZE_MAX}) {
        gateway fresh;
        auto o = opened_request_of(fresh.keys, form, bytes_view(sealed).first(n), piece);
        const bool framed = form == whole && n >= head_and_enc_bytes + aead_tag_bytes;
        ASSERT_EQ(o.why, framed ? ohttp_refusal::sealed : ohttp_refusal::format) << n;
        EXPECT_TRUE(form == chunked || o.plain.empty());
        EXPECT_TRUE(std::string_view("question").starts_with(o.plain)) << n;
      }
    gateway fresh;
    EXPECT_EQ(fresh.refusal(form, sealed), ohttp_refusal::none);
  }
}

TEST(OhttpRequest, EveryFlippedBitIsRefused) {
  for (ohttp_form form : both_forms) {
    gateway g;
    const bytes sealed = g.request(form, as_bytes("question"));
    for (size_t i = 0; i < 8 * sealed.size(); ++i) {
      const auto why = g.refusal(form, flipped(sealed, i / 8, uint8_t(1 << i % 8)));
      ASSERT_NE(why, ohttp_refusal::none) << i / 8;
      // An id may become that of the next key, which is another.
      const bool in_suite = i / 8 > 0 && i / 8 < ohttp_head::wire_bytes;
      EXPECT_TRUE(!in_suite || why == ohttp_refusal::key) << i / 8;
      const bool behind = i / 8 >= ohttp_head::wire_bytes && form == whole;
      EXPECT_TRUE(!behind || why == ohttp_refusal::sealed) << i / 8;
    }
    EXPECT_EQ(g.refusal(form, sealed), ohttp_refusal::none) << "none of them was remembered";
  }
}

TEST(OhttpRequest, AnExtraByteIsRefused) {
  for (ohttp_form form : both_forms) {
    gateway g;
    const bytes sealed = g.request(form, as_bytes("question"));
    EXPECT_EQ(g.refusal(form, joined({sealed, as_bytes("x")})), ohttp_refusal::sealed);
    EXPECT_EQ(g.refusal(form, sealed), ohttp_refusal::none);
  }
}

TEST(OhttpRequest, AnotherKeySuiteOrFormIsRefused) {
  for (ohttp_form form : both_forms) {
    gateway g, other(1, 1000, 5), longer_key(2);
    const bytes sealed = g.request(form, as_bytes("question"));
    EXPECT_EQ(other.refusal(form, sealed), ohttp_refusal::sealed) << "the same id, another key";
    EXPECT_EQ(longer_key.refusal(form, sealed), ohttp_refusal::key);
    const auto wrong = form == whole ? chunked : whole;
    EXPECT_NE(g.refusal(wrong, sealed), ohttp_refusal::none);
    bytes unknown = sealed;
    unknown[0] = std::byte{99};
    EXPECT_EQ(g.refusal(form, unknown), ohttp_refusal::key);
    EXPECT_EQ(g.refusal(form, bytes_view(unknown).first(7)), ohttp_refusal::key)
        << "that is enough";
    EXPECT_EQ(g.refusal(form, sealed), ohttp_refusal::none);
  }
}

TEST(OhttpRequest, ASealThatGivesZeroesIsRefused) {
  gateway g;
  const auto head = ohttp_head{.key_id = 1}.bytes();
  EXPECT_EQ(g.refusal(whole, joined({head, bytes(32), bytes(40)})), ohttp_refusal::sealed);
}

/// The frames of a sealed stream, one by one, behind the head.
struct frames_of {
  explicit frames_of(bytes_view sealed, size_t chunks) : head(copy_of(sealed.first(39))) {
    sealed = sealed.subspan(head_and_enc_bytes);
    for (size_t i = 0; i < chunks; ++i) {
      const size_t told = varint_bytes_told(sealed[0]);
      const size_t size = told + size_t(varint_value(sealed.first(told)));
      frames.push_back(copy_of(sealed.first(size)));
      sealed = sealed.subspan(size);
    }
    frames.push_back(copy_of(sealed));
  }
  bytes in_order(const std::vector<size_t>& order) const {
    bytes out = head;
    for (size_t i : order) out = joined({out, frames[i]});
    return out;
  }
  bytes head;
  std::vector<bytes> frames;
};

TEST(OhttpRequest, ChunksHaveTheirPlaces) {
  const std::vector<std::vector<size_t>> wrong = {
      {1, 0, 2, 3}, {0, 2, 1, 3},    {1, 2, 3},       {0, 2, 3},       {0, 1, 3},
      {3},          {0, 0, 1, 2, 3}, {0, 1, 1, 2, 3}, {0, 1, 2, 2, 3}, {0, 1, 2, 3, 3},
      {0, 1, 2},    {0, 1, 2, 3, 0}};
  auto opened = [](const std::vector<size_t>& order) {
    gateway g;
    const frames_of f(g.request(chunked, as_bytes("abcdefgh"), {3, 3, 2, 0}), 3);
    return opened_request_of(g.keys, chunked, f.in_order(order), 11);
  };
  EXPECT_EQ(opened({0, 1, 2, 3}).plain, "abcdefgh");
  for (const auto& order : wrong) {
    auto o = opened(order);
    EXPECT_FALSE(o.whole);
    EXPECT_TRUE(std::string_view("abcdefgh").starts_with(o.plain));
  }
}

TEST(OhttpRequest, OnlyTheFinalChunkMayBeEmpty) {
  gateway g;
  bytes out = text_bytes("before");
  auto sealer = g.sealer(chunked);
  EXPECT_FALSE(sealer.seal({}, false, out));
  EXPECT_EQ(out, text_bytes("before"));
  // Sealed by hand, for a client of ours does not.
  const ohttp_head head{.key_id = g.known.key_id};
  auto sender = *hpke_sender::make(head.suite, g.known.pk, head.info(chunked));
  bytes message = joined({head.bytes(), sender.enc(), bytes{std::byte{16}}});
  ASSERT_TRUE(sender.seal({}, {}, message));
  message.push_back(std::byte{0});
  ASSERT_TRUE(sender.seal(as_bytes("final"), {}, message));
  EXPECT_EQ(g.refusal(chunked, message), ohttp_refusal::format);
}

TEST(OhttpRequest, ChunksHaveALimit) {
  for (size_t size : {most - 1, most, most + 1})
    for (bool final : {false, true}) {
      gateway g;
      const bytes plain = random_bytes(size, 9);
      auto sealer = g.sealer(chunked);
      bytes ours;
      EXPECT_EQ(bool(sealer.seal(plain, final, ours)), size <= most);
      EXPECT_EQ(ours.empty(), size > most);
      const ohttp_head head{.key_id = g.known.key_id};
      auto sender = *hpke_sender::make(head.suite, g.known.pk, head.info(chunked));
      bytes theirs = joined({head.bytes(), sender.enc()});
      append_varint(theirs, final ? 0 : size + aead_tag_bytes);
      ASSERT_TRUE(sender.seal(final ? as_bytes("final") : bytes_view{}, plain, theirs));
      if (!final) {
        append_varint(theirs, 0);
        ASSERT_TRUE(sender.seal(as_bytes("final"), {}, theirs));
      }
      auto o = opened_request_of(g.keys, chunked, theirs, 5000);
      EXPECT_EQ(o.whole, size <= most) << size;
      EXPECT_EQ(o.why == ohttp_refusal::format, size > most);
    }
}

TEST(OhttpRequest, HasALimitThatTheGatewaySets) {
  for (ohttp_form form : both_forms) {
    const bytes sealed = gateway().request(form, random_bytes(1000, 1));
    for (size_t limit : {sealed.size() - 1, sealed.size(), sealed.size() + 1})
      for (size_t piece : {size_t{100}, SIZE_MAX}) {
        gateway fresh;
        ohttp_request_opener opener(fresh.keys, form, 0, limit);
        EXPECT_EQ(pushed(opener, sealed, piece).whole, limit >= sealed.size());
        EXPECT_EQ(opener.refusal() == ohttp_refusal::too_large, limit < sealed.size());
      }
  }
}

TEST(OhttpRequest, OfKnownLengthHasALimit) {
  const size_t room = limits::ohttp_whole_bytes_max - head_and_enc_bytes - aead_tag_bytes;
  gateway g;
  for (size_t size : {room - 1, room, room + 1}) {
    auto sealed = seal_ohttp_request(g.known, bytes(size));
    ASSERT_EQ(bool(sealed), size <= room);
    if (!sealed) continue;
    EXPECT_EQ(opened_request_of(g.keys, whole, sealed->message).plain.size(), size);
  }
}

TEST(OhttpRequest, IsOpenedOnce) {
  for (ohttp_form form : both_forms) {
    gateway g;
    const bytes sealed = g.request(form, as_bytes("question"));
    EXPECT_EQ(g.refusal(form, sealed), ohttp_refusal::none);
    for (size_t piece : {size_t{1}, SIZE_MAX}) {
      auto o = opened_request_of(g.keys, form, sealed, piece);
      EXPECT_EQ(o.why, ohttp_refusal::replay);
      EXPECT_EQ(o.plain, "");
    }
    EXPECT_EQ(g.refusal(form, g.request(form, as_bytes("question"))), ohttp_refusal::none);
  }
}

TEST(OhttpRequest, AStreamIsOpenedOnceAlsoIfItNeverEnds) {
  gateway g;
  const bytes sealed = g.request(chunked, as_bytes("question"), {4, 4});
  ohttp_request_opener first(g.keys, chunked, 0), second(g.keys, chunked, 0);
  std::pmr::string plain, none;
  EXPECT_TRUE(first.push(bytes_view(sealed).first(sealed.size() - 1), plain));
  EXPECT_EQ(plain, "ques");
  EXPECT_FALSE(second.push(sealed, none));
  EXPECT_EQ(second.refusal(), ohttp_refusal::replay);
  EXPECT_EQ(none, "");
}

TEST(OhttpRequest, WhatAnOverheardSealFailsWithIsNotHeldAgainstIt) {
  gateway g;
  const bytes sealed = g.request(whole, as_bytes("question"));
  for (int i = 0; i < 3; ++i) {
    bytes forged = copy_of(bytes_view(sealed).first(head_and_enc_bytes));
    forged.resize(sealed.size());
    EXPECT_EQ(g.refusal(whole, forged), ohttp_refusal::sealed);
  }
  EXPECT_EQ(g.refusal(whole, sealed), ohttp_refusal::none);
}

TEST(OhttpRequest, AKeyThatRemembersAllItCanOpensNothingMore) {
  for (ohttp_form form : both_forms) {
    gateway g(1, 3);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(g.refusal(form, g.request(form, as_bytes("question"))), ohttp_refusal::none) << i;
    auto o = opened_request_of(g.keys, form, g.request(form, as_bytes("question")));
    EXPECT_EQ(o.why, ohttp_refusal::full);
    EXPECT_EQ(o.plain, "");
    ASSERT_TRUE(g.keys.rotate(0));
    g.known = read_ohttp_keys(g.keys.published())->front();
    EXPECT_EQ(g.refusal(form, g.request(form, as_bytes("question"))), ohttp_refusal::none);
  }
}

TEST(OhttpRequest, NothingFollowsTheFinalPieceOrAnError) {
  for (ohttp_form form : both_forms) {
    gateway g;
    bytes out;
    auto sealer = g.sealer(form);
    EXPECT_FALSE(sealer.answer()) << "not yet";
    ASSERT_TRUE(sealer.seal(as_bytes("all"), true, out));
    const bytes sealed = out;
    for (bool final : {false, true}) EXPECT_FALSE(sealer.seal(as_bytes("more"), final, out));
    EXPECT_EQ(out, sealed);
    EXPECT_TRUE(sealer.answer());
    EXPECT_FALSE(sealer.answer()) << "once";

    auto broken = g.sealer(form);
    EXPECT_FALSE(broken.seal(bytes(form == whole ? 1 : most + 1), false, out));
    EXPECT_FALSE(broken.seal(as_bytes("all"), true, out));
    EXPECT_TRUE(broken.ended());
    EXPECT_FALSE(broken.answer());
    EXPECT_EQ(out, sealed);
  }
}

TEST(OhttpRequest, AKeyThatNobodyCanSealToIsRefused) {
  gateway g;
  auto refused = [](ohttp_config c) { return !ohttp_request_sealer::make(c, whole); };
  ohttp_config c = g.known;
  EXPECT_FALSE(refused(c));
  c.pk = bytes(32);
  EXPECT_TRUE(refused(c)) << "of small order";
  c.pk = bytes(31, std::byte{9});
  EXPECT_TRUE(refused(c));
  c = g.known;
  c.algorithms = {{1, 0xffff}};
  EXPECT_TRUE(refused(c));
  c = g.known;
  c.kem = 0x647a;
  EXPECT_TRUE(refused(c));
}

TEST(OhttpRequest, ACallThatFailsAddsNothingAndLeavesNothing) {
  gateway g;
  const bytes secret = text_bytes("a secret of a client");
  const frames_of f(g.request(chunked, joined({secret, secret}), {20, 20, 0}), 2);
  bytes room(4096);
  std::pmr::monotonic_buffer_resource memory(room.data(), room.size(),
                                             std::pmr::null_memory_resource());
  std::pmr::string plain("kept", &memory);
  // A string that is cut ends in a zero, so the beginning would be gone in any case.
  auto lies_in_room = [&] {
    return as_text(room).find("secret of a client") != as_text(room).npos;
  };
  {
    ohttp_request_opener opener(g.keys, chunked, 0);
    bytes moved = f.in_order({0, 0, 1, 2});  // the first one opens, the second does not
    EXPECT_FALSE(opener.push(moved, plain));
    EXPECT_EQ(plain, "kept");
    EXPECT_FALSE(lies_in_room());
  }
  gateway fresh;
  ohttp_request_opener opener(fresh.keys, chunked, 0);
  EXPECT_TRUE(opener.push(f.in_order({0}), plain));
  EXPECT_TRUE(lies_in_room()) << "the negative control";
}

TEST(OhttpRequest, NoRoomIsARefusal) {
  for (ohttp_form form : both_forms) {
    gateway g;
    const bytes sealed = g.request(form, random_bytes(5000, 1));
    std::pmr::string plain(std::pmr::null_memory_resource());
    ohttp_request_opener opener(g.keys, form, 0);
    EXPECT_FALSE(opener.push(sealed, plain) && opener.finish(plain));
    EXPECT_EQ(opener.refusal(), ohttp_refusal::too_large);
  }
}

TEST(OhttpRequest, NumbersItsChunks) {
  // 300 chunks: the second byte of the number counts, too.
  gateway g;
  const bytes sealed = g.request(chunked, random_bytes(300, 3), std::vector<size_t>(300, 1));
  auto o = opened_request_of(g.keys, chunked, sealed, 77);
  EXPECT_TRUE(o.whole);
  EXPECT_EQ(copy_of(as_bytes(o.plain)), random_bytes(300, 3));
  // The same by HPKE itself.
  gateway keys;
  const ohttp_head head{.key_id = keys.known.key_id};
  auto sender = *hpke_sender::make(head.suite, keys.known.pk, head.info(chunked));
  bytes theirs = joined({head.bytes(), sender.enc()});
  for (int i = 0; i < 300; ++i) {
    append_varint(theirs, 1 + aead_tag_bytes);
    ASSERT_TRUE(sender.seal({}, bytes(1, std::byte(uint8_t(i))), theirs));
  }
  append_varint(theirs, 0);
  ASSERT_TRUE(sender.seal(as_bytes("final"), {}, theirs));
  EXPECT_EQ(opened_request_of(keys.keys, chunked, theirs, 77).plain.size(), 300u);
}

}  // namespace
}  // namespace lethe
