#include "runtime/token/token_request.hpp"

#include <algorithm>

#include "runtime/base/varint.hpp"
#include "runtime/crypto/big_endian.hpp"
#include "runtime/token/token_limits.hpp"

namespace lethe {

namespace {

constexpr size_t answered_bytes = 1 + 2 + token_modulus_bytes;  // 01 ‖ type ‖ signature

result<void> expect_type(bytes_view bytes, const char* where) {
  const auto type = load_be<uint16_t>(bytes.data());
  if (type == token_type_blind_rsa) return {};
  return fail("{}: type {:#06x}; this release has 0x0002", where, type);
}

void append(bytes_view bytes, std::vector<std::byte>& out) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// What follows a number that says how many bytes follow.
result<bytes_view> after_total(bytes_view bytes, const char* where) {
  std::string_view text = as_text(bytes);
  auto total = take_varint(text);
  if (!total) return fail("{}: {} bytes end in their length", where, bytes.size());
  if (*total != text.size())
    return fail("{}: it says {} bytes and has {}", where, *total, text.size());
  return as_bytes(text);
}

result<void> expect_count(size_t count, const char* where) {
  if (count >= 1 && count <= limits::token_batch_max) return {};
  return fail("{}: {} in it; 1 to {}", where, count, limits::token_batch_max);
}

/// Takes the next answer off the front.
result<std::optional<token_signature>> take_answer(bytes_view& left) {
  constexpr const char* where = "token batch response";
  if (left[0] == std::byte{0}) {
    left = left.subspan(1);
    return std::optional<token_signature>{};
  }
  if (left[0] != std::byte{1}) return fail("{}: neither answered nor refused", where);
  if (left.size() < answered_bytes) return fail("{}: it ends in an answer", where);
  if (auto ok = expect_type(left.subspan(1), where); !ok) return ok.why();
  std::optional<token_signature> read(std::in_place);
  std::ranges::copy(left.subspan(3, token_modulus_bytes), read->begin());
  left = left.subspan(answered_bytes);
  return read;
}

}  // namespace

std::array<std::byte, token_request::wire_bytes> token_request::to_bytes() const {
  std::array<std::byte, wire_bytes> out;
  store_be(token_type_blind_rsa, out.data());
  out[2] = std::byte(short_key_id);
  std::ranges::copy(blinded, out.begin() + 3);
  return out;
}

result<token_request> token_request::from_bytes(bytes_view bytes) {
  if (bytes.size() != wire_bytes)
    return fail("token request: {} bytes; one of type 2 has {}", bytes.size(), wire_bytes);
  if (auto ok = expect_type(bytes, "token request"); !ok) return ok.why();
  token_request read{.short_key_id = uint8_t(bytes[2])};
  std::ranges::copy(bytes.subspan(3), read.blinded.begin());
  return read;
}

result<token_signature> read_token_response(bytes_view bytes) {
  if (bytes.size() != token_modulus_bytes)
    return fail("token response: {} bytes; one of type 2 has {}", bytes.size(),
                token_modulus_bytes);
  token_signature read;
  std::ranges::copy(bytes, read.begin());
  return read;
}

std::vector<std::byte> write_batch_request(std::span<const token_request> requests) {
  check(bool(expect_count(requests.size(), "token batch request")));
  std::vector<std::byte> out;
  append_varint(out, requests.size() * token_request::wire_bytes);
  for (const auto& r : requests) append(r.to_bytes(), out);
  return out;
}

result<std::vector<token_request>> read_batch_request(bytes_view bytes) {
  constexpr const char* where = "token batch request";
  auto left = after_total(bytes, where);
  if (!left) return left.why();
  if (left->size() % token_request::wire_bytes != 0)
    return fail("{}: {} bytes are not requests of {}", where, left->size(),
                token_request::wire_bytes);
  if (auto ok = expect_count(left->size() / token_request::wire_bytes, where); !ok) return ok.why();
  std::vector<token_request> requests;
  for (; !left->empty(); *left = left->subspan(token_request::wire_bytes)) {
    auto read = token_request::from_bytes(left->first(token_request::wire_bytes));
    if (!read) return read.why();
    requests.push_back(*read);
  }
  return requests;
}

std::vector<std::byte> write_batch_response(const batch_answer& answer) {
  check(bool(expect_count(answer.size(), "token batch response")));
  std::vector<std::byte> body, out;
  for (const auto& one : answer) {
    body.push_back(std::byte(one.has_value()));
    if (!one) continue;
    body.resize(body.size() + 2);
    store_be(token_type_blind_rsa, &body[body.size() - 2]);
    append(*one, body);
  }
  append_varint(out, body.size());
  append(body, out);
  return out;
}

result<batch_answer> read_batch_response(bytes_view bytes) {
  constexpr const char* where = "token batch response";
  auto left = after_total(bytes, where);
  if (!left) return left.why();
  batch_answer answer;
  while (!left->empty()) {
    if (auto ok = expect_count(answer.size() + 1, where); !ok) return ok.why();
    auto one = take_answer(*left);
    if (!one) return one.why();
    answer.push_back(*one);
  }
  if (auto ok = expect_count(answer.size(), where); !ok) return ok.why();
  return answer;
}

}  // namespace lethe
