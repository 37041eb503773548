#include "runtime/crypto/hpke.hpp"

#include "runtime/crypto/labeled_hkdf.hpp"

namespace lethe {

namespace {

enum class end { sender, receiver };

std::array<std::byte, 10> suite_id_of(const hpke_suite& suite) {
  std::array<std::byte, 10> id;
  std::ranges::copy(as_bytes("HPKE"), id.begin());
  std::ranges::copy(suite.bytes(), id.begin() + 4);
  return id;
}

hpke_keys schedule(const hpke_suite& suite, bytes_view shared, bytes_view info, end which) {
  const auto id = suite_id_of(suite);
  labeled_hkdf hkdf{id};
  // mode_base ‖ psk_id_hash ‖ info_hash. These three are public.
  std::array<std::byte, 1 + 2 * hkdf_hash_bytes> context{};
  std::ranges::copy(hkdf.extract({}, "psk_id_hash", {}).view(), context.begin() + 1);
  std::ranges::copy(hkdf.extract({}, "info_hash", info).view(),
                    context.begin() + 1 + hkdf_hash_bytes);
  key_bytes secret = hkdf.extract(shared, "secret", {});
  key_bytes key = hkdf.expand(secret.view(), "key", context, {}, suite.cipher_key_bytes());
  return {.cipher = which == end::sender ? aead::sealing(suite.cipher(), key.view())
                                         : aead::opening(suite.cipher(), key.view()),
          .nonces = {hkdf.expand(secret.view(), "base_nonce", context, {}, aead_nonce_bytes)},
          .exporter = hkdf.expand(secret.view(), "exp", context, {}, hkdf_hash_bytes),
          .suite_id = id};
}

error used_up() { return fail("hpke: every number of this context is used; set up another"); }

}  // namespace

std::array<std::byte, hpke_suite::wire_bytes> hpke_suite::bytes() const noexcept {
  std::array<std::byte, wire_bytes> out;
  size_t at = 0;
  for (uint16_t id : {kem, kdf, aead}) {
    out[at++] = std::byte(uint8_t(id >> 8));
    out[at++] = std::byte(uint8_t(id));
  }
  return out;
}

hpke_suite hpke_suite::from_bytes(std::span<const std::byte, wire_bytes> bytes) noexcept {
  auto id = [&bytes](size_t at) {
    return uint16_t(uint16_t(bytes[at]) << 8 | uint16_t(bytes[at + 1]));
  };
  return {.kem = id(0), .kdf = id(2), .aead = id(4)};
}

result<void> expect_known(const hpke_suite& suite) {
  if (kem_public_bytes(suite.kem) != 0 && suite.kdf == hpke_suite::hkdf_sha256 &&
      suite.aead >= uint16_t(aead_id::aes_128_gcm) &&
      suite.aead <= uint16_t(aead_id::chacha20_poly1305))
    return {};
  return fail(
      "hpke: suite {:#06x}, {:#06x}, {:#06x} is not known; this release has KEM 0x0020, KDF "
      "0x0001, "
      "AEAD 0x0001 to 0x0003",
      suite.kem, suite.kdf, suite.aead);
}

void hpke_keys::export_to(bytes_view context, std::span<std::byte> out) const {
  labeled_hkdf{suite_id}.expand(exporter.view(), "sec", context, {}, out);
}

key_bytes hpke_keys::export_key(bytes_view context, size_t bytes) const {
  key_bytes out(bytes);
  export_to(context, out.bytes());
  return out;
}

result<hpke_sender> hpke_sender::make(const hpke_suite& suite, bytes_view receiver_public,
                                      bytes_view info) {
  auto ephemeral = hpke_key::make(suite.kem);
  if (!ephemeral) return ephemeral.why();
  return make(suite, receiver_public, info, *ephemeral);
}

result<hpke_sender> hpke_sender::make(const hpke_suite& suite, bytes_view receiver_public,
                                      bytes_view info, const hpke_key& ephemeral) {
  if (auto known = expect_known(suite); !known) return known.why();
  auto shared = ephemeral.shared_with_receiver(receiver_public);
  if (!shared) return shared.why();
  return hpke_sender(schedule(suite, shared->view(), info, end::sender), ephemeral.public_key());
}

result<void> hpke_sender::seal(bytes_view aad, bytes_view plain, std::vector<std::byte>& out) {
  if (keys_.nonces.used_up()) return used_up();
  size_t at = out.size();
  out.resize(at + plain.size() + aead_tag_bytes);
  keys_.cipher.seal(keys_.nonces.current(), aad, {plain}, out.data() + at);
  ++keys_.nonces.next;
  return {};
}

result<hpke_receiver> hpke_receiver::make(const hpke_suite& suite, const hpke_key& key,
                                          bytes_view enc, bytes_view info) {
  if (auto known = expect_known(suite); !known) return known.why();
  if (key.kem() != suite.kem)
    return fail("hpke: the key is of KEM {:#06x}, the suite of {:#06x}", key.kem(), suite.kem);
  auto shared = key.shared_with_sender(enc);
  if (!shared) return shared.why();
  return hpke_receiver(schedule(suite, shared->view(), info, end::receiver));
}

result<void> hpke_receiver::open(bytes_view aad, bytes_view sealed, std::byte* out) {
  if (keys_.nonces.used_up()) return used_up();
  if (!keys_.cipher.open(keys_.nonces.current(), aad, sealed, out))
    return fail("hpke: message {} does not open; it was changed, or sealed for another",
                keys_.nonces.next);
  ++keys_.nonces.next;
  return {};
}

}  // namespace lethe
