#include "runtime/crypto/ohttp_config.hpp"

#include <bitset>

#include "runtime/crypto/big_endian.hpp"

namespace lethe {

namespace {

constexpr size_t id_and_kem_bytes = 1 + 2, length_bytes = 2, symmetric_bytes = 2 + 2;
// A public key of one byte, and one pair of algorithms.
constexpr size_t config_bytes_min = id_and_kem_bytes + 1 + length_bytes + symmetric_bytes;

void append_u16(std::vector<std::byte>& out, size_t value) {
  check(value <= UINT16_MAX);
  out.push_back(std::byte(uint8_t(value >> 8)));
  out.push_back(std::byte(uint8_t(value)));
}

/// Takes the entry and its length off the front of `list`.
result<bytes_view> take_entry(bytes_view& list) {
  if (list.size() < length_bytes) return fail("ohttp keys: the list ends within a length");
  const size_t bytes = load_be<uint16_t>(list.data());
  list = list.subspan(length_bytes);
  if (bytes > list.size())
    return fail("ohttp keys: an entry of {} bytes where {} are left", bytes, list.size());
  if (bytes < config_bytes_min)
    return fail("ohttp keys: an entry of {} bytes is too short for a key", bytes);
  bytes_view entry = list.first(bytes);
  list = list.subspan(bytes);
  return entry;
}

}  // namespace

std::vector<std::byte> ohttp_config::to_bytes() const {
  check(!algorithms.empty());
  std::vector<std::byte> out{std::byte{key_id}};
  append_u16(out, kem);
  out.insert(out.end(), pk.begin(), pk.end());
  append_u16(out, symmetric_bytes * algorithms.size());
  for (const symmetric& s : algorithms) {
    append_u16(out, s.kdf);
    append_u16(out, s.aead);
  }
  return out;
}

result<ohttp_config> ohttp_config::from_bytes(bytes_view bytes) {
  if (bytes.size() < config_bytes_min) return fail("ohttp key: {} bytes are too few", bytes.size());
  ohttp_config read{.key_id = uint8_t(bytes[0]), .kem = load_be<uint16_t>(bytes.data() + 1)};
  const size_t pk = kem_public_bytes(read.kem);
  if (pk == 0)
    return fail("ohttp key: KEM {:#06x} is not known; this release has 0x0020 (X25519)", read.kem);
  bytes = bytes.subspan(id_and_kem_bytes);
  if (bytes.size() < pk + length_bytes) return fail("ohttp key: it ends within its public key");
  read.pk.assign(bytes.begin(), bytes.begin() + ptrdiff_t(pk));
  const size_t told = load_be<uint16_t>(bytes.data() + pk);
  bytes = bytes.subspan(pk + length_bytes);
  if (told != bytes.size() || told == 0 || told % symmetric_bytes != 0)
    return fail("ohttp key: algorithms of {} bytes where {} are left; each pair takes {}", told,
                bytes.size(), symmetric_bytes);
  for (; !bytes.empty(); bytes = bytes.subspan(symmetric_bytes))
    read.algorithms.push_back(
        {load_be<uint16_t>(bytes.data()), load_be<uint16_t>(bytes.data() + 2)});
  return read;
}

result<hpke_suite> ohttp_config::suite() const {
  for (const symmetric& s : algorithms) {
    const hpke_suite one{.kem = kem, .kdf = s.kdf, .aead = s.aead};
    if (expect_known(one)) return one;
  }
  return fail("ohttp key: none of its {} suites is known to this release", algorithms.size());
}

std::vector<std::byte> write_ohttp_keys(std::span<const ohttp_config> keys) {
  std::vector<std::byte> out;
  for (const ohttp_config& key : keys) {
    const std::vector<std::byte> one = key.to_bytes();
    append_u16(out, one.size());
    out.insert(out.end(), one.begin(), one.end());
  }
  check(out.size() <= limits::ohttp_keys_bytes_max);
  return out;
}

result<std::vector<ohttp_config>> read_ohttp_keys(bytes_view bytes) {
  if (bytes.size() > limits::ohttp_keys_bytes_max)
    return fail("ohttp keys: {} bytes; {} are accepted", bytes.size(),
                limits::ohttp_keys_bytes_max);
  std::vector<ohttp_config> read;
  std::bitset<256> ids;
  while (!bytes.empty()) {
    auto entry = take_entry(bytes);
    if (!entry) return entry.why();
    const auto id = uint8_t((*entry)[0]);
    if (ids.test(id)) return fail("ohttp keys: two entries have the id {}", id);
    ids.set(id);
    if (kem_public_bytes(load_be<uint16_t>(entry->data() + 1)) == 0) continue;
    auto key = ohttp_config::from_bytes(*entry);
    if (!key) return key.why();
    read.push_back(*std::move(key));
  }
  if (read.empty())
    return fail("ohttp keys: none of the {} keys is of a KEM that this release has", ids.count());
  return read;
}

}  // namespace lethe
