#include "runtime/crypto/receipt.hpp"

#include "runtime/crypto/big_endian.hpp"
#include "runtime/crypto/labeled_fields.hpp"

namespace lethe {

namespace {

constexpr std::string_view label = "lethe receipt";
constexpr size_t field_bytes = receipt_bytes - signature_bytes;

}  // namespace

signed_receipt sign_receipt(const node_key& key, const receipt& r) {
  signed_receipt out;
  std::byte* at = out.data();
  for (const hash32& hash : {r.token_hash, r.request_hash, r.release})
    at = std::ranges::copy(hash, at).out;
  store_be(r.epoch, at);
  store_be(r.arenas, at + 4);
  store_be(r.bytes_wiped, at + 8);
  std::ranges::copy(key.sign(labeled(label, bytes_view(out).first(field_bytes))),
                    out.begin() + field_bytes);
  return out;
}

result<receipt> verify_receipt(bytes_view bytes, const hash32& sigpk) {
  if (bytes.size() < receipt_bytes)
    return fail("receipt: {} bytes; it has {}", bytes.size(), receipt_bytes);
  for (std::byte b : bytes.subspan(receipt_bytes))
    if (b != std::byte{}) return fail("receipt: something other than zeroes follows it");
  bytes_view fields = bytes.first(field_bytes);
  if (!verify_signature(sigpk, labeled(label, fields), bytes.subspan(field_bytes, signature_bytes)))
    return fail("receipt: its signature is not the node's");
  receipt r;
  const std::byte* at = fields.data();
  for (hash32* hash : {&r.token_hash, &r.request_hash, &r.release}) {
    std::copy_n(at, hash->size(), hash->begin());
    at += hash->size();
  }
  r.epoch = load_be<uint32_t>(at);
  r.arenas = load_be<uint32_t>(at + 4);
  r.bytes_wiped = load_be<uint64_t>(at + 8);
  return r;
}

}  // namespace lethe
