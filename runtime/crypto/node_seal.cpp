#include "runtime/crypto/node_seal.hpp"

#include "runtime/crypto/random.hpp"
#include "runtime/crypto/sealed_message.hpp"

namespace lethe {

namespace {

constexpr uint32_t grace_epochs = 1;

result<void> expect_sealable(bytes_view plain, std::span<const node_public> nodes) {
  if (plain.size() > limits::sealed_plain_bytes_max)
    return fail("sealed request: {} bytes; {} are the most", plain.size(),
                limits::sealed_plain_bytes_max);
  if (nodes.empty() || nodes.size() > limits::seal_nodes_max)
    return fail("sealed request: for {} nodes; 1 to {} can be named", nodes.size(),
                limits::seal_nodes_max);
  if (auto known = expect_known(nodes[0].suite); !known) return known.why();
  for (const node_public& n : nodes) {
    if (n.suite != nodes[0].suite) return fail("sealed request: its nodes have different suites");
    if (n.id != node_key_id(n.suite, n.pk, n.sigpk))
      return fail("sealed request: a node's id is not that of its key");
  }
  return {};
}

/// The plaintext in full chunks; the last one, which may be empty, is final.
void append_chunks(chunk_sealer& to, bytes_view plain, std::vector<std::byte>& out) {
  for (bool final = false; !final;) {
    bytes_view piece = plain.first(std::min(plain.size(), limits::chunk_plain_bytes_max));
    plain = plain.subspan(piece.size());
    final = plain.empty();
    check(bool(to.seal(piece, final, out)));
  }
}

result<seal_entry> entry_for(const node_key& key, const sealed_message& m, uint32_t epoch_now) {
  if (m.suite != key.published().suite)
    return fail("sealed request: its suite is not that of this node's key");
  if (m.epoch > epoch_now || epoch_now - m.epoch > grace_epochs)
    return fail("sealed request: of epoch {}, now is {}; seal it to the current roster", m.epoch,
                epoch_now);
  for (const seal_entry& e : m.entries)
    if (e.node_id == key.published().id) return e;
  return fail("sealed request: this node's key is not among those it is for");
}

/// Into `plain`, which has the room.
result<void> open_chunks(chunk_opener& with, bytes_view chunks, std::pmr::string& plain) {
  chunk_frames frames;
  while (true) {
    auto chunk = frames.next(chunks);
    if (!chunk) return chunk.why();
    if (chunk->empty()) break;
    if (auto opened = with.open(*chunk, false, plain); !opened) return opened;
  }
  auto last = frames.finish();
  if (!last) return last.why();
  return with.open(*last, true, plain);
}

result<std::pmr::string> open_body(const sealed_message& m, const hash32& binding, bytes_view cek,
                                   std::pmr::memory_resource* memory) {
  auto bytes = plain_bytes_in(m.chunks);
  if (!bytes) return bytes.why();
  if (*bytes > limits::sealed_plain_bytes_max)
    return fail("sealed request: {} bytes of plaintext; {} are accepted", *bytes,
                limits::sealed_plain_bytes_max);
  std::pmr::string plain(memory);
  if (!make_room(plain, *bytes))
    return fail("sealed request: no room for its {} bytes in the request's memory", *bytes);
  chunk_opener opener(m.suite.cipher(), binding, cek);
  auto opened = open_chunks(opener, m.chunks, plain);
  if (opened) return plain;
  wipe(plain.data(), plain.size());
  return opened.why();
}

}  // namespace

result<sealed_request> seal_request(bytes_view plain, std::span<const node_public> nodes,
                                    uint32_t epoch, const hash32& token_hash,
                                    uint32_t chunk_bytes) {
  if (auto good = expect_sealable(plain, nodes); !good) return good.why();
  sealed_message m{.suite = nodes[0].suite, .epoch = epoch};
  std::vector<hpke_sender> senders;
  for (const node_public& n : nodes) {
    auto sender = hpke_sender::make(m.suite, n.pk, m.info(n.id));
    if (!sender) return sender.why();
    senders.push_back(*std::move(sender));
  }
  for (size_t i = 0; i < nodes.size(); ++i)
    m.entries.push_back({.node_id = nodes[i].id, .enc = senders[i].enc()});
  const hash32 binding = m.binding(token_hash);

  key_bytes cek(m.suite.cipher_key_bytes());
  fill_random(cek.bytes());
  std::vector<std::byte> chunks;
  const size_t each = 4 + aead_tag_bytes;
  chunks.reserve(plain.size() + each * (plain.size() / limits::chunk_plain_bytes_max + 1));
  chunk_sealer sealer(m.suite.cipher(), binding, cek.view());
  append_chunks(sealer, plain, chunks);

  const hash32 aad = wrap_aad(binding, chunks);
  const size_t n = answer_nonce_bytes(m.suite);
  std::vector<std::vector<std::byte>> wrapped(nodes.size());
  std::vector<answer_candidate> candidates;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (auto good = senders[i].seal(aad, cek.view(), wrapped[i]); !good) return good.why();
    m.entries[i].wrapped = wrapped[i];
    bytes_view enc = senders[i].enc();
    candidates.push_back({.node = nodes[i],
                          .enc = {enc.begin(), enc.end()},
                          .secret = senders[i].keys().export_key(as_bytes(answer_label), n)});
  }
  std::vector<std::byte> message = m.head();
  message.insert(message.end(), chunks.begin(), chunks.end());
  const answer_opener::expected receipt{token_hash, sha256({message}), epoch, chunk_bytes};
  return sealed_request{std::move(message), answer_opener(std::move(candidates), receipt)};
}

result<opened_request> open_request(const node_key& key, bytes_view sealed, uint32_t epoch_now,
                                    const hash32& token_hash, std::pmr::memory_resource* memory,
                                    uint32_t chunk_bytes) {
  auto m = sealed_message::parse(sealed);
  if (!m) return m.why();
  auto entry = entry_for(key, *m, epoch_now);
  if (!entry) return entry.why();
  auto receiver =
      hpke_receiver::make(m->suite, key.seal_key(), entry->enc, m->info(entry->node_id));
  if (!receiver) return receiver.why();
  const hash32 binding = m->binding(token_hash);
  key_bytes cek(m->suite.cipher_key_bytes());
  if (!receiver->open(wrap_aad(binding, m->chunks), entry->wrapped, cek.data()))
    return fail("sealed request: it does not open; it was changed, or is bound to another token");
  auto plain = open_body(*m, binding, cek.view(), memory);
  if (!plain) return plain.why();
  key_bytes secret =
      receiver->keys().export_key(as_bytes(answer_label), answer_nonce_bytes(m->suite));
  return opened_request{
      .plain = *std::move(plain),
      .answer = answer_sealer(m->suite, entry->node_id, entry->enc, secret, chunk_bytes),
      .request_hash = sha256({sealed}),
      .epoch = m->epoch,
      .enc = {entry->enc.begin(), entry->enc.end()}};
}

}  // namespace lethe
