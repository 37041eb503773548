#include "runtime/crypto/refusal.hpp"

#include <algorithm>

#include "runtime/crypto/big_endian.hpp"
#include "runtime/crypto/labeled_fields.hpp"

namespace lethe {

namespace {

constexpr std::string_view label = "lethe refusal";
constexpr size_t field_bytes = refusal_bytes - signature_bytes;

}  // namespace

signed_refusal sign_refusal(const node_key& key, const node_refusal& r) {
  signed_refusal out;
  std::byte* at = std::ranges::copy(r.binding, out.data()).out;
  store_be(r.epoch, at);
  store_be(uint8_t(r.reason), at + 4);
  std::ranges::copy(key.sign(labeled(label, bytes_view(out).first(field_bytes))),
                    out.begin() + field_bytes);
  return out;
}

result<node_refusal> verify_refusal(bytes_view bytes, const hash32& sigpk, const hash32& binding) {
  if (bytes.size() != refusal_bytes)
    return fail("refusal: {} bytes; it has {}", bytes.size(), refusal_bytes);
  bytes_view fields = bytes.first(field_bytes);
  if (!verify_signature(sigpk, labeled(label, fields), bytes.last(signature_bytes)))
    return fail("refusal: its signature is not the node's");
  node_refusal r;
  std::ranges::copy(fields.first<32>(), r.binding.begin());
  r.epoch = load_be<uint32_t>(fields.data() + 32);
  r.reason = refusal_reason(fields.back());
  if (r.binding != binding) return fail("refusal: of another request");
  if (uint8_t(r.reason) == 0 || uint8_t(r.reason) > refusal_reasons)
    return fail("refusal: reason {} is unknown", uint8_t(r.reason));
  return r;
}

}  // namespace lethe
