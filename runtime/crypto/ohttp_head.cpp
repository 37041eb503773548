#include "runtime/crypto/ohttp_head.hpp"

namespace lethe {

namespace {

struct labels {
  std::string_view request, response;
};

constexpr labels labels_of(ohttp_form form) {
  return form == ohttp_form::whole
             ? labels{"message/bhttp request", "message/bhttp response"}
             : labels{"message/bhttp chunked request", "message/bhttp chunked response"};
}

}  // namespace

std::array<std::byte, ohttp_head::wire_bytes> ohttp_head::bytes() const noexcept {
  std::array<std::byte, wire_bytes> out{std::byte{key_id}};
  std::ranges::copy(suite.bytes(), out.begin() + 1);
  return out;
}

ohttp_head ohttp_head::from_bytes(std::span<const std::byte, wire_bytes> bytes) noexcept {
  return {.key_id = uint8_t(bytes[0]), .suite = hpke_suite::from_bytes(bytes.subspan<1>())};
}

std::vector<std::byte> ohttp_head::info(ohttp_form form) const {
  bytes_view label = as_bytes(labels_of(form).request);
  std::vector<std::byte> out(label.begin(), label.end());
  out.push_back(std::byte{});
  const auto head = bytes();
  out.insert(out.end(), head.begin(), head.end());
  return out;
}

ohttp_exchange ohttp_exchange::of(ohttp_form form, const hpke_suite& suite, bytes_view enc,
                                  const hpke_keys& keys) {
  return {.form = form,
          .suite = suite,
          .enc = {enc.begin(), enc.end()},
          .secret = keys.export_key(as_bytes(labels_of(form).response), answer_nonce_bytes(suite))};
}

std::vector<std::byte> ohttp_exchange::salt(bytes_view nonce) const {
  std::vector<std::byte> out(enc);
  out.insert(out.end(), nonce.begin(), nonce.end());
  return out;
}

}  // namespace lethe
