#include "parallel/link_hello.hpp"

#include <openssl/crypto.h>

#include "runtime/crypto/aead.hpp"
#include "runtime/crypto/big_endian.hpp"
#include "runtime/crypto/hkdf.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/crypto/sha256.hpp"

namespace lethe {
namespace {

constexpr std::string_view magic = "lethe link 1";

// Where each field lies. The random bytes are the last 20.
constexpr size_t at_epoch = 12, at_name = 20, at_size = 52, at_from = 56, at_to = 60, at_lane = 64,
                 at_sealed = 65, at_random = 68;

hash32 digest(const group_terms& terms) { return sha256({as_bytes(terms.name)}); }

key_bytes expand(const group_terms& terms, std::string_view what, direction way, const hello& first,
                 const hello& second, size_t bytes) {
  check(terms.secret.size() == 32);
  const std::array to{std::byte(way)};
  key_bytes prk = hkdf_extract(as_bytes(magic), {terms.secret.view()});
  return hkdf_expand(prk.view(), {as_bytes(what), to, first, second}, bytes);
}

}  // namespace

hello say_hello(const group_terms& terms, uint32_t to, lane on) {
  hello h{};
  std::ranges::copy(as_bytes(magic), h.begin());
  store_be(terms.epoch, &h[at_epoch]);
  std::ranges::copy(digest(terms), &h[at_name]);
  store_be(terms.size, &h[at_size]);
  store_be(terms.rank, &h[at_from]);
  store_be(to, &h[at_to]);
  h[at_lane] = std::byte(on);
  h[at_sealed] = std::byte(!terms.protected_link);
  fill_random(std::span(h).subspan(at_random));
  return h;
}

result<caller> read_hello(const group_terms& terms, const hello& said) {
  if (!std::ranges::equal(as_bytes(magic), std::span(said).first(magic.size())))
    return fail("a stranger, who said no hello");
  auto epoch = load_be<uint64_t>(&said[at_epoch]);
  if (epoch != terms.epoch)
    return fail("a rank of epoch {}, and here is epoch {}", epoch, terms.epoch);
  auto rank = load_be<uint32_t>(&said[at_from]);
  if (!std::ranges::equal(digest(terms), std::span(said).subspan(at_name, 32)) ||
      load_be<uint32_t>(&said[at_size]) != terms.size)
    return fail("rank {} of another group", rank);
  if (said[at_sealed] != std::byte(!terms.protected_link))
    return fail("rank {}, whose config does not say the same of protected_link", rank);
  if (rank >= terms.size || rank == terms.rank || load_be<uint32_t>(&said[at_to]) != terms.rank ||
      uint8_t(said[at_lane]) >= lanes)
    return fail("rank {}, who wants rank {}", rank, load_be<uint32_t>(&said[at_to]));
  return caller{rank, lane(said[at_lane])};
}

proof prove(const group_terms& terms, direction way, const hello& first, const hello& second) {
  key_bytes derived = expand(terms, "proof", way, first, second, proof_bytes);
  proof p;
  std::ranges::copy(derived.view(), p.begin());
  return p;
}

bool proves(const group_terms& terms, direction way, const hello& first, const hello& second,
            const proof& given) {
  proof right = prove(terms, way, first, second);
  return CRYPTO_memcmp(right.data(), given.data(), right.size()) == 0;
}

link_key derive_key(const group_terms& terms, direction way, const hello& first,
                    const hello& second) {
  size_t bytes = aead_key_bytes(aead_id::aes_128_gcm);
  key_bytes both = expand(terms, "key", way, first, second, bytes + aead_nonce_bytes);
  return {key_bytes(both.view().first(bytes)), key_bytes(both.view().subspan(bytes))};
}

}  // namespace lethe
