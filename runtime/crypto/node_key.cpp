#include "runtime/crypto/node_key.hpp"

namespace lethe {

hash32 node_key_id(const hpke_suite& suite, bytes_view pk, const hash32& sigpk) {
  return sha256({as_bytes("lethe node key"), suite.bytes(), pk, sigpk});
}

std::vector<std::byte> node_public::to_bytes() const {
  std::vector<std::byte> out(hpke_suite::wire_bytes + pk.size() + sigpk.size());
  auto at = std::ranges::copy(suite.bytes(), out.begin()).out;
  at = std::ranges::copy(pk, at).out;
  std::ranges::copy(sigpk, at);
  return out;
}

result<node_public> node_public::from_bytes(bytes_view bytes) {
  if (bytes.size() < hpke_suite::wire_bytes)
    return fail("node key: {} bytes are too few for its suite", bytes.size());
  node_public read{.suite = hpke_suite::from_bytes(bytes.first<hpke_suite::wire_bytes>())};
  if (auto known = expect_known(read.suite); !known) return known.why();
  const size_t pk = read.suite.public_bytes(), right = hpke_suite::wire_bytes + pk + 32;
  if (bytes.size() != right)
    return fail("node key: {} bytes; one of this suite has {}", bytes.size(), right);
  bytes_view key = bytes.subspan(hpke_suite::wire_bytes, pk);
  read.pk.assign(key.begin(), key.end());
  std::ranges::copy(bytes.last<32>(), read.sigpk.begin());
  read.id = node_key_id(read.suite, read.pk, read.sigpk);
  return read;
}

result<node_key> node_key::make(const hpke_suite& suite) {
  auto seal = hpke_key::make(suite.kem);
  if (!seal) return seal.why();
  return from(suite, *std::move(seal), signing_key::make());
}

result<node_key> node_key::from(const hpke_suite& suite, hpke_key seal, signing_key sign) {
  if (auto known = expect_known(suite); !known) return known.why();
  if (seal.kem() != suite.kem)
    return fail("node key: a key of KEM {:#06x} in a suite of {:#06x}", seal.kem(), suite.kem);
  bytes_view pk = seal.public_key();
  node_public published{.suite = suite,
                        .pk = {pk.begin(), pk.end()},
                        .sigpk = sign.public_key(),
                        .id = node_key_id(suite, pk, sign.public_key())};
  return node_key(std::move(seal), std::move(sign), std::move(published));
}

}  // namespace lethe
