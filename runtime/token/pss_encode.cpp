#include "runtime/token/pss_encode.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "runtime/base/check.hpp"
#include "runtime/crypto/big_endian.hpp"
#include "runtime/crypto/key_bytes.hpp"
#include "runtime/crypto/openssl.hpp"

namespace lethe {

namespace {

constexpr size_t hash_bytes = 48;  // SHA-384

void sha384(std::initializer_list<bytes_view> parts, std::byte* to) {
  openssl::digest_context context(EVP_MD_CTX_new());
  check(context && EVP_DigestInit_ex(context.get(), EVP_sha384(), nullptr) == 1);
  for (bytes_view part : parts)
    check(EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1);
  check(EVP_DigestFinal_ex(context.get(), openssl::uchars(to), nullptr) == 1);
}

/// XORs MGF1 of the seed onto `to`.
void mask(bytes_view seed, std::span<std::byte> to) {
  key_bytes block(hash_bytes);
  std::array<std::byte, 4> counter;
  for (uint32_t i = 0; !to.empty(); ++i) {
    store_be(i, counter.data());
    sha384({seed, counter}, block.data());
    const size_t size = std::min(to.size(), hash_bytes);
    for (size_t k = 0; k < size; ++k) to[k] ^= block.data()[k];
    to = to.subspan(size);
  }
}

}  // namespace

secret_bytes pss_encode(bytes_view message, bytes_view salt, size_t modulus_bytes) {
  // DB ‖ H ‖ bc, with DB = 00.. ‖ 01 ‖ salt.
  check(modulus_bytes >= 2 * hash_bytes + salt.size() + 2);
  secret_bytes encoded(modulus_bytes);
  std::byte* const out = encoded.bytes().data();
  const size_t db_bytes = modulus_bytes - hash_bytes - 1;
  key_bytes message_hash(hash_bytes);
  sha384({message}, message_hash.data());
  constexpr std::array<std::byte, 8> zeroes{};
  sha384({zeroes, message_hash.view(), salt}, out + db_bytes);
  out[db_bytes - salt.size() - 1] = std::byte{1};
  std::ranges::copy(salt, out + db_bytes - salt.size());
  mask({out + db_bytes, hash_bytes}, {out, db_bytes});
  out[0] &= std::byte{0x7f};
  out[modulus_bytes - 1] = std::byte{0xbc};
  return encoded;
}

}  // namespace lethe
