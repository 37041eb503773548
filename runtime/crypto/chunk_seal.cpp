#include "runtime/crypto/chunk_seal.hpp"

#include "runtime/base/varint.hpp"
#include "runtime/crypto/chunk_frames.hpp"
#include "runtime/crypto/hkdf.hpp"

namespace lethe {

namespace {

bytes_view aad_of(bool final) { return final ? as_bytes("final") : bytes_view{}; }

}  // namespace

chunk_keys chunk_keys::sealing(aead_id id, bytes_view salt, bytes_view secret) {
  key_bytes prk = hkdf_extract(salt, {secret});
  key_bytes key = hkdf_expand(prk.view(), {as_bytes("key")}, aead_key_bytes(id));
  return {aead::sealing(id, key.view()),
          {hkdf_expand(prk.view(), {as_bytes("nonce")}, aead_nonce_bytes)}};
}

chunk_keys chunk_keys::opening(aead_id id, bytes_view salt, bytes_view secret) {
  key_bytes prk = hkdf_extract(salt, {secret});
  key_bytes key = hkdf_expand(prk.view(), {as_bytes("key")}, aead_key_bytes(id));
  return {aead::opening(id, key.view()),
          {hkdf_expand(prk.view(), {as_bytes("nonce")}, aead_nonce_bytes)}};
}

result<void> chunk_sealer::seal(bytes_view plain, bool final, std::vector<std::byte>& out,
                                bytes_view prefix, bytes_view suffix) {
  if (!keys_) return fail("sealed stream: nothing follows its final chunk");
  const size_t bytes = prefix.size() + plain.size() + suffix.size();
  if (bytes > limits::chunk_plain_bytes_max)
    return fail("sealed stream: a chunk of {} bytes; {} are the most", bytes,
                limits::chunk_plain_bytes_max);
  if (bytes == 0 && !final) return fail("sealed stream: only the final chunk may be empty");
  if (keys_->nonces.used_up()) return fail("sealed stream: every number of its key is used");
  append_varint(out, final ? 0 : bytes + aead_tag_bytes);
  const size_t at = out.size();
  out.resize(at + bytes + aead_tag_bytes);
  keys_->cipher.seal(keys_->nonces.current(), aad_of(final), {prefix, plain, suffix},
                     out.data() + at);
  ++keys_->nonces.next;
  if (final) keys_.reset();
  return {};
}

result<void> chunk_sealer::seal_whole(bytes_view plain, std::vector<std::byte>& out) {
  if (!keys_) return fail("sealed stream: nothing follows its final chunk");
  const size_t at = out.size();
  out.resize(at + plain.size() + aead_tag_bytes);
  keys_->cipher.seal(keys_->nonces.current(), {}, {plain}, out.data() + at);
  keys_.reset();
  return {};
}

result<void> chunk_opener::open(bytes_view sealed, bool final, std::pmr::string& out) {
  check(sealed.size() <= chunk_sealed_bytes_max);
  check(final || sealed.size() > aead_tag_bytes);  // both are chunk_frames' to refuse
  return open_as(aad_of(final), sealed, final, out);
}

result<void> chunk_opener::open_whole(bytes_view sealed, std::pmr::string& out) {
  return open_as({}, sealed, true, out);
}

result<void> chunk_opener::open_as(bytes_view aad, bytes_view sealed, bool last,
                                   std::pmr::string& out) {
  if (!keys_) return fail("sealed stream: it ended, or was broken, before this chunk");
  check(sealed.size() >= aead_tag_bytes);
  const size_t at = out.size(), bytes = sealed.size() - aead_tag_bytes;
  if (!make_room(out, at + bytes)) return fail("sealed stream: no memory for a chunk's plaintext");
  out.resize(at + bytes);
  auto* to = reinterpret_cast<std::byte*>(out.data() + at);
  const uint64_t number = keys_->nonces.next;
  const bool good =
      !keys_->nonces.used_up() && keys_->cipher.open(keys_->nonces.current(), aad, sealed, to);
  ++keys_->nonces.next;
  if (last || !good) keys_.reset();
  if (good) return {};
  out.resize(at);
  return fail("sealed stream: chunk {} does not open; it was changed, moved or cut", number);
}

result<size_t> plain_bytes_in(bytes_view chunks) {
  chunk_frames frames;
  size_t plain = 0;
  while (true) {
    auto chunk = frames.next(chunks);
    if (!chunk) return chunk.why();
    if (chunk->empty()) break;
    plain += chunk->size() - aead_tag_bytes;
  }
  auto last = frames.finish();
  if (!last) return last.why();
  return plain + last->size() - aead_tag_bytes;
}

bool make_room(std::pmr::string& text, size_t bytes) try {
  // Never within the string itself, which may lie on a stack.
  if (bytes > text.capacity() || text.capacity() < 64)
    text.reserve(std::max({bytes, 2 * text.capacity(), size_t{64}}));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace lethe
