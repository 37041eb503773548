#include "runtime/crypto/node_seal.hpp"

#include "crypto_samples.hpp"
#include "runtime/crypto/chunk_frames.hpp"
#include "runtime/crypto/sealed_message.hpp"
#include "runtime/crypto/seen_seals.hpp"

namespace lethe {
namespace {

using namespace test;

constexpr uint32_t now = 4711;
const hash32 token = sha256({as_bytes("a token")}), other_token = sha256({as_bytes("another")});

hpke_suite suite_of(uint16_t aead) { return {.aead = aead}; }

/// Nodes, and what a client knows of them.
struct nodes {
  explicit nodes(size_t count, hpke_suite suite = {}) {
    for (size_t i = 0; i < count; ++i) {
      keys.push_back(*node_key::make(suite));
      known.push_back(keys.back().published());
    }
  }
  bytes sealed(bytes_view plain, uint32_t epoch = now) const {
    auto s = seal_request(plain, known, epoch, token);
    if (!s) ADD_FAILURE() << s.why().text;
    return s->message;
  }
  std::vector<node_key> keys;
  std::vector<node_public> known;
};

result<opened_request> open(const node_key& key, bytes_view sealed, uint32_t epoch_now = now,
                            const hash32& token_hash = token) {
  return open_request(key, sealed, epoch_now, token_hash, std::pmr::get_default_resource());
}

/// Why it does not open; empty if it does.
std::string refusal(const node_key& key, bytes_view sealed, uint32_t epoch_now = now,
                    const hash32& token_hash = token) {
  auto opened = open(key, sealed, epoch_now, token_hash);
  return opened ? "" : opened.why().text;
}

TEST(NodeSeal, EveryNodeThatWasNamedOpensIt) {
  for (uint16_t aead : {1, 2, 3})
    for (size_t count : {1, 2, 3})
      for (size_t size : {0, 1, 16383, 16384, 16385, 1 << 20}) {
        nodes n(count, suite_of(aead));
        const bytes plain = random_bytes(size, uint32_t(size));
        auto sealed = seal_request(plain, n.known, now, token);
        ASSERT_TRUE(sealed) << sealed.why().text;
        for (const node_key& key : n.keys) {
          auto opened = open(key, sealed->message);
          ASSERT_TRUE(opened) << opened.why().text;
          EXPECT_EQ(copy_of(as_bytes(opened->plain)), plain);
          EXPECT_EQ(opened->request_hash, sha256({sealed->message}));
          EXPECT_EQ(opened->epoch, now);
        }
        EXPECT_NE(refusal(*node_key::make(suite_of(aead)), sealed->message), "");
      }
}

TEST(NodeSeal, ThePlaintextIsInTheGivenMemoryOnly) {
  nodes n(1);
  for (size_t size : {0, 1, 15, 16, 100'000}) {
    bytes room(200'000);
    std::pmr::monotonic_buffer_resource memory(room.data(), room.size(),
                                               std::pmr::null_memory_resource());
    auto opened = open_request(n.keys[0], n.sealed(random_bytes(size, 1)), now, token, &memory);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->plain.get_allocator().resource(), &memory);
    auto* at = reinterpret_cast<std::byte*>(opened->plain.data());
    EXPECT_TRUE(at >= room.data() && at + size <= room.data() + room.size()) << size;
  }
}

TEST(NodeSeal, NoRoomIsARefusal) {
  nodes n(1);
  std::pmr::monotonic_buffer_resource memory(std::pmr::null_memory_resource());
  auto opened = open_request(n.keys[0], n.sealed(bytes(5000)), now, token, &memory);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.why().text.find("no room"), std::string::npos);
}

// Where the parts of a message of the default suite are.
constexpr size_t head_bytes = 12, entry_bytes = 32 + 32 + 32, wrapped_at = 32 + 32;

TEST(NodeSeal, EveryFlippedBitIsRefused) {
  nodes n(1);
  const bytes sealed = n.sealed(as_bytes("a small request"));
  for (size_t i = 0; i < 8 * sealed.size(); ++i)
    ASSERT_NE(refusal(n.keys[0], flipped(sealed, i / 8, 1 << i % 8)), "") << i / 8;
  EXPECT_EQ(refusal(n.keys[0], sealed), "");
}

TEST(NodeSeal, WhatIsWrappedForAnotherNodeIsAllThatANodeCannotCheck) {
  nodes n(3);
  auto s = seal_request(as_bytes("a small request"), n.known, now, token);
  const bytes& sealed = s->message;
  for (size_t node = 0; node < 3; ++node)
    for (size_t i = 0; i < sealed.size(); ++i) {
      const bytes wrong = flipped(sealed, i);
      auto opened = open(n.keys[node], wrong);
      const bool in_entries = i >= head_bytes && i < head_bytes + 3 * entry_bytes;
      const size_t entry = (i - head_bytes) / entry_bytes, at = (i - head_bytes) % entry_bytes;
      ASSERT_EQ(bool(opened), in_entries && at >= wrapped_at && entry != node) << i;
      // The client sees it: the receipt is for the message as it came.
      if (!opened) continue;
      EXPECT_NE(opened->request_hash, sha256({sealed}));
    }
}

TEST(NodeSeal, EveryCutAndEveryExtraByteIsRefused) {
  nodes n(2);
  const bytes sealed = n.sealed(as_bytes("a small request"));
  for (size_t i = 0; i < sealed.size(); ++i)
    ASSERT_NE(refusal(n.keys[1], bytes_view(sealed).first(i)), "") << i;
  EXPECT_NE(refusal(n.keys[1], joined({sealed, as_bytes("x")})), "");
}

TEST(NodeSeal, SwappedNodesAndPartsAreRefused) {
  nodes n(2);
  const bytes sealed = n.sealed(as_bytes("request")), other = n.sealed(as_bytes("request"));
  bytes_view all = sealed, head = all.first(head_bytes);
  bytes_view first = all.subspan(head_bytes, entry_bytes);
  bytes_view second = all.subspan(head_bytes + entry_bytes, entry_bytes);
  bytes_view chunks = all.subspan(head_bytes + 2 * entry_bytes);
  const bytes swapped = joined({head, second, first, chunks});
  // The ids change places, the rest stays.
  const bytes renamed = joined(
      {head, second.first(32), first.subspan(32), first.first(32), second.subspan(32), chunks});
  bytes alone = joined({head, first, chunks});
  alone[head_bytes - 1] = std::byte{1};
  const bytes moved_body = joined({all.first(head_bytes + 2 * entry_bytes),
                                   bytes_view(other).subspan(head_bytes + 2 * entry_bytes)});
  for (const node_key& key : n.keys)
    for (const bytes& wrong : {swapped, renamed, alone, moved_body})
      EXPECT_NE(refusal(key, wrong), "");
}

TEST(NodeSeal, IsBoundToItsToken) {
  nodes n(1);
  const bytes sealed = n.sealed(as_bytes("request"));
  EXPECT_EQ(refusal(n.keys[0], sealed), "");
  EXPECT_NE(refusal(n.keys[0], sealed, now, other_token), "");
}

TEST(NodeSeal, IsForItsEpochAndTheNextAndNoOther) {
  nodes n(1);
  const bytes sealed = n.sealed(as_bytes("request"));
  EXPECT_EQ(refusal(n.keys[0], sealed, now), "");
  EXPECT_EQ(refusal(n.keys[0], sealed, now + 1), "");
  EXPECT_NE(refusal(n.keys[0], sealed, now + 2).find("of epoch 4711, now is 4713"),
            std::string::npos);
  EXPECT_NE(refusal(n.keys[0], sealed, now - 1), "");
  EXPECT_NE(refusal(n.keys[0], sealed, 0), "");
  EXPECT_EQ(refusal(n.keys[0], n.sealed(as_bytes("x"), 0), 0), "");
  EXPECT_EQ(refusal(n.keys[0], n.sealed(as_bytes("x"), UINT32_MAX), UINT32_MAX), "");
  EXPECT_NE(refusal(n.keys[0], n.sealed(as_bytes("x"), UINT32_MAX), 0), "") << "no wrapping";
}

/// What a candidate learns of a message that names it: cek and A.
struct co_candidate {
  co_candidate(const node_key& key, bytes_view sealed, size_t place) {
    auto m = sealed_message::parse(sealed);
    const seal_entry& e = m->entries[place];
    auto hpke = hpke_receiver::make(m->suite, key.seal_key(), e.enc, m->info(e.node_id));
    binding = m->binding(token);
    cek = key_bytes(m->suite.cipher_key_bytes());
    EXPECT_TRUE(hpke->open(wrap_aad(binding, m->chunks), e.wrapped, cek.data()));
  }
  hash32 binding;
  key_bytes cek;
};

TEST(NodeSeal, ACoCandidateCannotReplaceTheBody) {
  nodes n(2);
  const bytes sealed = n.sealed(as_bytes("what the client asked"));
  co_candidate knows(n.keys[1], sealed, 1);
  bytes forged = copy_of(bytes_view(sealed).first(head_bytes + 2 * entry_bytes));
  chunk_sealer sealer(aead_id::aes_128_gcm, knows.binding, knows.cek.view());
  ASSERT_TRUE(sealer.seal(as_bytes("something else"), true, forged));
  // The body is good under cek: only the wrapping tells.
  chunk_opener opener(aead_id::aes_128_gcm, knows.binding, knows.cek.view());
  std::pmr::string plain;
  EXPECT_TRUE(
      opener.open(bytes_view(forged).subspan(head_bytes + 2 * entry_bytes + 1), true, plain));
  EXPECT_EQ(plain, "something else");
  for (const node_key& key : n.keys) EXPECT_NE(refusal(key, forged), "");
}

/// A message from a client that wraps what it likes: `chunks` are sealed by `make`.
template <class F>
bytes sealed_by_hand(const node_public& to, F make) {
  sealed_message m{.suite = to.suite, .epoch = now};
  auto sender = hpke_sender::make(m.suite, to.pk, m.info(to.id));
  m.entries.push_back({.node_id = to.id, .enc = sender->enc()});
  const hash32 binding = m.binding(token);
  key_bytes cek(random_bytes(16, 1));
  bytes chunks = make(binding, cek.view()), wrapped;
  EXPECT_TRUE(sender->seal(wrap_aad(binding, chunks), cek.view(), wrapped));
  m.entries[0].wrapped = wrapped;
  return joined({m.head(), chunks});
}

/// Chunks of `each` bytes of plaintext, `total` in all.
bytes sealed_by_hand(const node_public& to, size_t total, size_t each) {
  return sealed_by_hand(to, [=](const hash32& binding, bytes_view cek) {
    chunk_sealer sealer(to.suite.cipher(), binding, cek);
    bytes out;
    for (size_t left = total; left > 0; left -= std::min(left, each))
      EXPECT_TRUE(sealer.seal(bytes(std::min(left, each)), false, out));
    EXPECT_TRUE(sealer.seal({}, true, out));
    return out;
  });
}

/// Counts what is asked of it.
struct counting_memory : std::pmr::memory_resource {
  size_t asked = 0;
  void* do_allocate(size_t bytes, size_t align) override {
    asked += bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, align);
  }
  void do_deallocate(void* at, size_t bytes, size_t align) override {
    std::pmr::new_delete_resource()->deallocate(at, bytes, align);
  }
  bool do_is_equal(const memory_resource& o) const noexcept override { return this == &o; }
};

TEST(NodeSeal, TakesSixteenMebibytesAndNoMore) {
  nodes n(1);
  constexpr size_t most = limits::sealed_plain_bytes_max;
  for (size_t size : {most - 1, most}) {
    const bytes sealed = n.sealed(bytes(size));
    EXPECT_LE(sealed.size(), limits::sealed_request_bytes_max);
    EXPECT_EQ(refusal(n.keys[0], sealed), "") << size;
  }
  EXPECT_FALSE(seal_request(bytes(most + 1), n.known, now, token));
  EXPECT_EQ(refusal(n.keys[0], sealed_by_hand(n.known[0], most, 16384)), "");
  const bytes above = sealed_by_hand(n.known[0], most + 1, 16384);
  ASSERT_LE(above.size(), limits::sealed_request_bytes_max) << "it is the plaintext that counts";
  counting_memory memory;
  auto opened = open_request(n.keys[0], above, now, token, &memory);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.why().text.find("16777217 bytes of plaintext"), std::string::npos);
  EXPECT_EQ(memory.asked, 0u);
  bytes sealed = n.sealed(as_bytes("x"));
  sealed.resize(limits::sealed_request_bytes_max + 1);
  EXPECT_NE(refusal(n.keys[0], sealed).find("are accepted"), std::string::npos);
}

TEST(NodeSeal, ManySmallChunksAreARequestToo) {
  nodes n(1);
  auto opened = open(n.keys[0], sealed_by_hand(n.known[0], 3000, 1));
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->plain.size(), 3000u);
}

TEST(NodeSeal, AnEmptyChunkIsRefusedThoughItIsSealed) {
  nodes n(1);
  const bytes sealed = sealed_by_hand(n.known[0], [](const hash32& binding, bytes_view cek) {
    auto keys = chunk_keys::sealing(aead_id::aes_128_gcm, binding, cek);
    bytes out(17 + 17);
    out[0] = std::byte{16};
    keys.cipher.seal(keys.nonces.current(), {}, {}, out.data() + 1);
    ++keys.nonces.next;
    keys.cipher.seal(keys.nonces.current(), as_bytes("final"), {}, out.data() + 18);
    return out;
  });
  EXPECT_NE(refusal(n.keys[0], sealed).find("holds nothing"), std::string::npos);
}

TEST(NodeSeal, WhatOpenedBeforeABrokenChunkIsWiped) {
  nodes n(1);
  const bytes sealed = sealed_by_hand(n.known[0], [](const hash32& binding, bytes_view cek) {
    chunk_sealer sealer(aead_id::aes_128_gcm, binding, cek);
    bytes out;
    EXPECT_TRUE(sealer.seal(bytes(1000, std::byte{'p'}), false, out));
    EXPECT_TRUE(sealer.seal(bytes(1000, std::byte{'p'}), true, out));
    return flipped(out, out.size() - 1);
  });
  bytes room(8192);
  std::pmr::monotonic_buffer_resource memory(room.data(), room.size());
  EXPECT_FALSE(open_request(n.keys[0], sealed, now, token, &memory));
  EXPECT_EQ(std::ranges::count(room, std::byte{'p'}), 0);
}

TEST(NodeSeal, RefusesNodesThatDoNotFitTogether) {
  nodes four(4), other(1, suite_of(3));
  EXPECT_FALSE(seal_request({}, {}, now, token));
  EXPECT_TRUE(seal_request({}, std::span(four.known).first(3), now, token));
  EXPECT_FALSE(seal_request({}, four.known, now, token));
  std::vector<node_public> mixed = {four.known[0], other.known[0]};
  EXPECT_FALSE(seal_request({}, mixed, now, token));
  std::vector<node_public> renamed = {four.known[0]};
  renamed[0].id[0] ^= std::byte{1};
  EXPECT_FALSE(seal_request({}, renamed, now, token));
  std::vector<node_public> unknown = {four.known[0]};
  unknown[0].suite.kem = 0x647a;
  EXPECT_FALSE(seal_request({}, unknown, now, token));
  std::vector<node_public> twice = {four.known[0], four.known[0]};
  auto drawn_twice = seal_request(as_bytes("x"), twice, now, token);
  ASSERT_TRUE(drawn_twice) << "draws are with replacement";
  EXPECT_EQ(refusal(four.keys[0], drawn_twice->message), "");
}

TEST(NodeSeal, ANodeOfAnotherSuiteRefuses) {
  nodes n(1, suite_of(1));
  auto seal = hpke_key::derive(0x20, random_bytes(32, 7));
  auto again = hpke_key::derive(0x20, random_bytes(32, 7));
  auto gcm = node_key::from(suite_of(1), *std::move(seal), signing_key::make());
  auto chacha = node_key::from(suite_of(3), *std::move(again), signing_key::make());
  const node_public known[] = {gcm->published()};
  auto sealed = seal_request(as_bytes("x"), known, now, token);
  EXPECT_EQ(refusal(*gcm, sealed->message), "");
  EXPECT_NE(refusal(*chacha, sealed->message).find("suite"), std::string::npos);
}

TEST(NodeKey, IsPublishedAsBytesThatGiveItsId) {
  for (uint16_t aead : {1, 2, 3}) {
    node_key key = *node_key::make(suite_of(aead));
    const node_public& p = key.published();
    EXPECT_EQ(p.id, sha256({as_bytes("lethe node key"), p.suite.bytes(), p.pk, p.sigpk}));
    const bytes b = p.to_bytes();
    ASSERT_EQ(b.size(), 6u + 32 + 32);
    auto read = node_public::from_bytes(b);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, p);
    for (size_t n = 0; n < b.size(); ++n)
      EXPECT_FALSE(node_public::from_bytes(bytes_view(b).first(n)));
    EXPECT_FALSE(node_public::from_bytes(joined({b, as_bytes("x")})));
    EXPECT_FALSE(node_public::from_bytes(flipped(b, 0)));
    EXPECT_NE(node_public::from_bytes(flipped(b, 60))->id, p.id);
  }
  EXPECT_FALSE(node_key::make({.kem = 0x647a}));
  EXPECT_FALSE(node_key::make({.aead = 9}));
}

TEST(SeenSeals, TakesEachOnceAndForgetsNone) {
  seen_seals seen(3);
  auto enc = [](uint32_t i) { return random_bytes(32, i); };
  EXPECT_TRUE(seen.insert(enc(1)));
  EXPECT_FALSE(seen.insert(enc(1)));
  EXPECT_TRUE(seen.insert(enc(2)));
  EXPECT_FALSE(seen.full());
  EXPECT_TRUE(seen.insert(enc(3)));
  EXPECT_TRUE(seen.full());
  EXPECT_FALSE(seen.insert(enc(4))) << "full";
  for (uint32_t i : {1, 2, 3, 4}) EXPECT_FALSE(seen.insert(enc(i)));
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_FALSE(seen_seals(0).insert(enc(1)));
}

TEST(SeenSeals, SeesAReplayOfAnOpenedRequest) {
  nodes n(1);
  seen_seals seen(100);
  const bytes first = n.sealed(as_bytes("x")), second = n.sealed(as_bytes("x"));
  EXPECT_TRUE(seen.insert(open(n.keys[0], first)->enc));
  EXPECT_TRUE(seen.insert(open(n.keys[0], second)->enc));
  EXPECT_FALSE(seen.insert(open(n.keys[0], first, now + 1)->enc));
}

TEST(SeenSealsDeathTest, HasABound) {
  EXPECT_DEATH(seen_seals(limits::seals_remembered_max + 1), "broken invariant");
  seen_seals most(limits::seals_remembered_max);
  EXPECT_FALSE(most.full());
}

}  // namespace
}  // namespace lethe
