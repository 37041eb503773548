#include "runtime/token/private_token.hpp"

#include <algorithm>

#include "runtime/crypto/big_endian.hpp"
#include "runtime/token/auth_header.hpp"
#include "runtime/token/base64url.hpp"

namespace lethe {

std::array<std::byte, private_token::wire_bytes> private_token::to_bytes() const {
  std::array<std::byte, wire_bytes> out;
  store_be(token_type_blind_rsa, out.data());
  auto at = std::ranges::copy(nonce, out.begin() + 2).out;
  at = std::ranges::copy(challenge_digest, at).out;
  at = std::ranges::copy(key_id, at).out;
  std::ranges::copy(signature, at);
  return out;
}

result<private_token> private_token::from_bytes(bytes_view bytes) {
  if (bytes.size() != wire_bytes)
    return fail("token: {} bytes; one of type 2 has {}", bytes.size(), wire_bytes);
  if (auto type = load_be<uint16_t>(bytes.data()); type != token_type_blind_rsa)
    return fail("token: type {:#06x}; this release has 0x0002", type);
  private_token read;
  size_t at = 2;
  for (hash32* field : {&read.nonce, &read.challenge_digest, &read.key_id}) {
    std::ranges::copy(bytes.subspan(at, field->size()), field->begin());
    at += field->size();
  }
  std::ranges::copy(bytes.subspan(at), read.signature.begin());
  return read;
}

result<void> verify_token(const private_token& token, const token_key& key,
                          const hash32& challenge_digest) {
  if (token.key_id != key.id()) return fail("token: it is of another key");
  if (token.challenge_digest != challenge_digest)
    return fail("token: it was bought for another challenge");
  const auto bytes = token.to_bytes();
  if (!key.rsa().verifies(bytes_view(bytes).first(private_token::signed_bytes), token.signature))
    return fail("token: its signature is wrong");
  return {};
}

secret_bytes write_authorization(const private_token& token) {
  constexpr std::string_view before = "PrivateToken token=\"";
  constexpr size_t chars = base64url_chars(private_token::wire_bytes);
  secret_bytes out(before.size() + chars + 1);
  char* at = reinterpret_cast<char*>(out.bytes().data());
  at = std::ranges::copy(before, at).out;
  write_base64url(token.to_bytes(), {at, chars});
  at[chars] = '"';
  return out;
}

result<private_token> read_authorization(std::string_view authorization) {
  auto schemes = read_auth(authorization);
  if (!schemes) return schemes.why();
  if (schemes->size() != 1 || !schemes->front().is(token_auth_scheme))
    return fail("authorization: it is not PrivateToken, and only that");
  auto token = schemes->front().find("token");
  if (!token) return token.why();
  if (!*token) return fail("authorization: PrivateToken without a token");
  auto bytes = read_base64url(**token);
  if (!bytes) return fail("authorization: the token is no base64url");
  return private_token::from_bytes(*bytes);
}

}  // namespace lethe
