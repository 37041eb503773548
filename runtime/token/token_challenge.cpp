#include "runtime/token/token_challenge.hpp"

#include <algorithm>
#include <charconv>

#include "runtime/crypto/big_endian.hpp"
#include "runtime/token/auth_header.hpp"
#include "runtime/token/base64url.hpp"
#include "runtime/token/token_limits.hpp"

namespace lethe {

namespace {

/// Takes what has its length before it; nothing if less is there.
template <class Length>
std::optional<bytes_view> take_sized(bytes_view& from) {
  if (from.size() < sizeof(Length)) return {};
  const size_t size = load_be<Length>(from.data());
  if (from.size() - sizeof(Length) < size) return {};
  bytes_view piece = from.subspan(sizeof(Length), size);
  from = from.subspan(sizeof(Length) + size);
  return piece;
}

template <class Length>
void append_sized(bytes_view piece, std::vector<std::byte>& out) {
  out.resize(out.size() + sizeof(Length));
  store_be(Length(piece.size()), &out[out.size() - sizeof(Length)]);
  out.insert(out.end(), piece.begin(), piece.end());
}

result<void> expect_names(const bytes_view& issuer, const bytes_view& origin) {
  if (issuer.empty() || issuer.size() > limits::token_issuer_bytes_max)
    return fail("token challenge: an issuer's name of {} bytes; 1 to {}", issuer.size(),
                limits::token_issuer_bytes_max);
  if (origin.size() > limits::token_origin_bytes_max)
    return fail("token challenge: an origin of {} bytes; at most {}", origin.size(),
                limits::token_origin_bytes_max);
  return {};
}

std::string base64url(bytes_view bytes) {
  std::string text(base64url_chars(bytes.size()), '\0');
  write_base64url(bytes, text);
  return text;
}

result<uint64_t> read_seconds(std::string_view digits) {
  constexpr size_t digits_max = 18;  // fits 64 bits
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  if (digits.empty() || digits.size() > digits_max ||
      std::from_chars(digits.data(), end, value).ptr != end)
    return fail("token challenge: max-age is not a number of seconds");
  return value;
}

/// Nothing for a challenge of another type.
result<std::optional<token_demand>> read_demand(const auth_scheme& from) {
  auto challenge = from.find("challenge"), key = from.find("token-key"), age = from.find("max-age");
  for (const auto* param : {&challenge, &key, &age})
    if (!*param) return param->why();
  auto bytes = read_base64url(challenge->value_or("="));
  if (!bytes || bytes->size() < 2) return fail("token challenge: it is not there, or no base64url");
  if (load_be<uint16_t>(bytes->data()) != token_type_blind_rsa)
    return std::optional<token_demand>{};
  auto read = token_challenge::from_bytes(*bytes);
  if (!read) return read.why();
  token_demand demand{.challenge = *std::move(read)};
  if (*key) {
    auto key_bytes = read_base64url(**key);
    if (!key_bytes) return fail("token challenge: token-key is no base64url");
    auto spki = read_spki(*key_bytes);
    if (!spki) return spki.why();
    demand.key = *spki;
  }
  if (*age) {
    auto seconds = read_seconds(**age);
    if (!seconds) return seconds.why();
    demand.max_age_s = *seconds;
  }
  return std::optional(std::move(demand));
}

}  // namespace

std::vector<std::byte> token_challenge::to_bytes() const {
  check(bool(expect_names(as_bytes(issuer), as_bytes(origin))));
  std::vector<std::byte> out(2);
  store_be(token_type_blind_rsa, out.data());
  append_sized<uint16_t>(as_bytes(issuer), out);
  append_sized<uint8_t>(redemption_context ? bytes_view(*redemption_context) : bytes_view(), out);
  append_sized<uint16_t>(as_bytes(origin), out);
  return out;
}

result<token_challenge> token_challenge::from_bytes(bytes_view bytes) {
  const bytes_view whole = bytes;
  if (bytes.size() < 2) return fail("token challenge: {} bytes have no type", bytes.size());
  if (auto type = load_be<uint16_t>(bytes.data()); type != token_type_blind_rsa)
    return fail("token challenge: type {:#06x}; this release has 0x0002", type);
  bytes = bytes.subspan(2);
  auto issuer = take_sized<uint16_t>(bytes);
  auto context = issuer ? take_sized<uint8_t>(bytes) : std::nullopt;
  auto origin = context ? take_sized<uint16_t>(bytes) : std::nullopt;
  if (!origin || !bytes.empty())
    return fail("token challenge: its fields do not fill its {} bytes", whole.size());
  if (auto ok = expect_names(*issuer, *origin); !ok) return ok.why();
  if (!context->empty() && context->size() != sizeof(hash32))
    return fail("token challenge: a redemption context of {} bytes; 0 or 32", context->size());
  token_challenge read{.issuer = std::string(as_text(*issuer)),
                       .origin = std::string(as_text(*origin))};
  if (!context->empty()) std::ranges::copy(*context, read.redemption_context.emplace().begin());
  return read;
}

std::string write_demand(const token_demand& demand) {
  std::string out =
      fmt::format("{} challenge=\"{}\"", token_auth_scheme, base64url(demand.challenge.to_bytes()));
  if (demand.key) out += fmt::format(", token-key=\"{}\"", base64url(*demand.key));
  if (demand.max_age_s) out += fmt::format(", max-age=\"{}\"", *demand.max_age_s);
  return out;
}

result<std::vector<token_demand>> read_demands(std::string_view www_authenticate) {
  auto schemes = read_auth(www_authenticate);
  if (!schemes) return schemes.why();
  std::vector<token_demand> demands;
  for (const auto& scheme : *schemes) {
    if (!scheme.is(token_auth_scheme)) continue;
    auto demand = read_demand(scheme);
    if (!demand) return demand.why();
    if (*demand) demands.push_back(**std::move(demand));
  }
  return demands;
}

}  // namespace lethe
