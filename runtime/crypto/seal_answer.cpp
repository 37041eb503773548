#include "runtime/crypto/seal_answer.hpp"

#include <bit>

#include "runtime/crypto/big_endian.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/crypto/sealed_message.hpp"

namespace lethe {

namespace {

constexpr std::array<std::byte, answer_shape::chunk_bytes_most> zeroes{};

std::vector<std::byte> random_bytes(size_t bytes) {
  std::vector<std::byte> out(bytes);
  fill_random(out);
  return out;
}

std::vector<std::byte> salt_of(bytes_view enc, bytes_view nonce) {
  std::vector<std::byte> salt(enc.begin(), enc.end());
  salt.insert(salt.end(), nonce.begin(), nonce.end());
  return salt;
}

error is_over() { return fail("sealed answer: it ended, or was broken, before this"); }

}  // namespace

answer_sealer::answer_sealer(const hpke_suite& suite, const hash32& node_id, bytes_view enc,
                             const key_bytes& secret, uint32_t chunk_bytes)
    : nonce_(random_bytes(answer_nonce_bytes(suite))),
      node_id_(node_id),
      chunk_bytes_(chunk_bytes),
      chunks_(suite.cipher(), salt_of(enc, nonce_), secret.view()) {}

size_t answer_sealer::room() const noexcept {
  const size_t named = sealed_ == 0 ? first_chunk_bytes_taken : 0;
  return chunk_bytes_ ? chunk_bytes_ - length_bytes - named : limits::chunk_plain_bytes_max - named;
}

bool answer_sealer::may_end() const noexcept {
  return sealed_ > 0 && (chunk_bytes_ == 0 || std::has_single_bit(sealed_ + 1));
}

result<void> answer_sealer::seal(bytes_view plain, bool final, std::vector<std::byte>& out) {
  if (final && sealed_ == 0)
    return fail("sealed answer: a chunk that names the node comes before the final one");
  if (final && !may_end())
    return fail("sealed answer: {} chunks and the final one are no power of two", sealed_);
  std::array<std::byte, first_chunk_bytes_taken + length_bytes> head;
  std::byte* end = head.data();
  if (sealed_ == 0) end = std::ranges::copy(node_id_, end).out;
  size_t zeroes_left = 0;
  if (chunk_bytes_ > 0) {
    const size_t room_here = final ? chunk_bytes_ : room();
    if (plain.size() > room_here)
      return fail("sealed answer: {} bytes for a chunk that holds {}", plain.size(), room_here);
    if (!final) {
      store_be(uint16_t(plain.size()), end);
      end += length_bytes;
    }
    zeroes_left = room_here - plain.size();
  }
  auto sealed =
      chunks_.seal(plain, final, out, {head.data(), end}, bytes_view(zeroes).first(zeroes_left));
  if (sealed) ++sealed_;
  return sealed;
}

result<void> answer_opener::push(bytes_view content, std::pmr::string& out) {
  if (over_) return is_over();
  auto opened = open_all(content, out);
  if (opened) return opened;
  over_ = true;
  drop_secrets();
  return opened;
}

result<void> answer_opener::open_all(bytes_view content, std::pmr::string& out) {
  const size_t missing = answer_nonce_bytes(candidates_[0].node.suite) - nonce_.size();
  bytes_view nonce = content.first(std::min(missing, content.size()));
  nonce_.insert(nonce_.end(), nonce.begin(), nonce.end());
  content = content.subspan(nonce.size());
  while (!content.empty()) {
    auto chunk = frames_.next(content);
    if (!chunk) return chunk.why();
    if (chunk->empty()) break;
    if (auto opened = open_next(*chunk, out); !opened) return opened;
  }
  return {};
}

result<void> answer_opener::open_next(bytes_view chunk, std::pmr::string& out) {
  if (auto good = expect_size(chunk); !good) return good;
  const size_t at = out.size();
  auto opened = chunks_ ? chunks_->open(chunk, false, out) : open_first(chunk, out);
  if (!opened) return opened;
  ++opened_;
  return keep_content(at, out);
}

/// What was padded to another size would tell the network what it is.
result<void> answer_opener::expect_size(bytes_view chunk) const {
  const size_t bytes = chunk.size() - aead_tag_bytes;
  if (expected_.chunk_bytes == 0 || bytes == expected_.chunk_bytes) return {};
  return fail("sealed answer: chunk {} holds {} bytes; the policy has {} for every chunk", opened_,
              bytes, expected_.chunk_bytes);
}

/// Of a sized chunk: length, content, zeroes.
result<void> answer_opener::keep_content(size_t at, std::pmr::string& out) const {
  if (expected_.chunk_bytes == 0) return {};
  constexpr size_t head = answer_sealer::length_bytes;
  const bytes_view plain = as_bytes(out).subspan(at);
  const size_t bytes = load_be<uint16_t>(plain.data()), most = plain.size() - head;
  const bool fits = bytes <= most;
  if (fits &&
      std::ranges::all_of(plain.subspan(head + bytes), [](auto b) { return b == std::byte{}; })) {
    out.resize(at + head + bytes);
    out.erase(at, head);
    return {};
  }
  wipe(out.data() + at, out.size() - at);
  out.resize(at);
  if (fits) return fail("sealed answer: in chunk {} data follows the padding", opened_ - 1);
  return fail("sealed answer: chunk {} says that it holds {} bytes; {} are the most", opened_ - 1,
              bytes, most);
}

/// Finds out who answers. Whoever's context opens the chunk must be named in it.
result<void> answer_opener::open_first(bytes_view chunk, std::pmr::string& out) {
  const size_t at = out.size();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const answer_candidate& c = candidates_[i];
    chunk_opener opener(c.node.suite.cipher(), salt_of(c.enc, nonce_), c.secret.view());
    if (!opener.open(chunk, false, out)) continue;
    bytes_view name = as_bytes(out).subspan(at, std::min(c.node.id.size(), out.size() - at));
    if (!std::ranges::equal(name, c.node.id)) {
      wipe(out.data() + at, out.size() - at);
      out.resize(at);
      return fail("sealed answer: the node that it names is not the one that sealed it");
    }
    out.erase(at, c.node.id.size());
    who_ = i;
    chunks_.emplace(std::move(opener));
    drop_secrets();
    return {};
  }
  return fail("sealed answer: its first chunk opens for none of the {} nodes asked",
              candidates_.size());
}

result<receipt> answer_opener::finish() {
  if (over_) return is_over();
  over_ = true;
  drop_secrets();
  auto read = open_last();
  if (chunks_) chunks_->close();
  return read;
}

result<receipt> answer_opener::open_last() {
  auto last = frames_.finish();
  if (!last) return last.why();
  if (!chunks_) return fail("sealed answer: no chunk names the node that it is from");
  if (auto good = expect_size(*last); !good) return good.why();
  std::pmr::string plain;  // no content: a receipt
  if (auto opened = chunks_->open(*last, true, plain); !opened) return opened.why();
  if (expected_.chunk_bytes > 0 && !std::has_single_bit(opened_ + 1))
    return fail("sealed answer: {} chunks; the policy wants a power of two", opened_ + 1);
  auto read = verify_receipt(as_bytes(plain), candidates_[who_].node.sigpk);
  if (!read) return read;
  if (read->token_hash != expected_.token_hash || read->request_hash != expected_.request_hash ||
      read->epoch != expected_.epoch)
    return fail("receipt: it is for another request");
  return read;
}

void answer_opener::drop_secrets() {
  for (answer_candidate& c : candidates_) c.secret.clear();
}

}  // namespace lethe
