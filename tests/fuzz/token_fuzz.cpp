#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/token/private_token.hpp"
#include "runtime/token/token_challenge.hpp"
#include "runtime/token/token_client.hpp"
#include "runtime/token/token_directory.hpp"
#include "runtime/token/token_limits.hpp"

using namespace lethe;

/// What strangers say of tokens, in every form: what is read is written again as it was, or reads
/// back the same where several texts mean one thing.
namespace {

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

template <class Bytes>
bool same(const Bytes& a, bytes_view b) {
  return as_text(a) == as_text(b);
}

void challenge_header(bytes_view in) {
  if (auto read = read_demands(as_text(in))) {
    expect(read->size() <= limits::auth_schemes_max);
    for (const token_demand& d : *read) {
      auto again = read_demands(write_demand(d));
      expect(again && again->size() == 1 && again->front() == d);
    }
  }
  if (auto token = read_authorization(as_text(in))) {
    auto again = read_authorization(write_authorization(*token).text());
    expect(again && *again == *token);
  }
}

void messages(bytes_view in) {
  if (auto read = token_challenge::from_bytes(in)) expect(same(read->to_bytes(), in));
  if (auto read = private_token::from_bytes(in)) expect(same(read->to_bytes(), in));
  if (auto read = token_request::from_bytes(in)) expect(same(read->to_bytes(), in));
  if (auto read = read_batch_request(in)) {
    expect(!read->empty() && read->size() <= limits::token_batch_max);
    expect(*read_batch_request(write_batch_request(*read)) == *read);
  }
  if (auto read = read_batch_response(in)) {
    expect(!read->empty() && read->size() <= limits::token_batch_max);
    expect(*read_batch_response(write_batch_response(*read)) == *read);
  }
}

void directory(bytes_view in) {
  auto read = read_directory(as_text(in));
  if (!read) return;
  expect(read->keys.size() <= limits::token_directory_keys_max);
  auto again = read_directory(write_directory(*read));
  expect(again && *again == *read);
}

void spki(bytes_view in) {
  auto read = token_key::from_spki(in);
  if (read) expect(same(read->spki(), in));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  bytes_view in(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      challenge_header(in);
      break;
    case 1:
      messages(in);
      break;
    case 2:
      directory(in);
      break;
    case 3:
      spki(in);
  }
  return 0;
}
