#pragma once

#include "runtime/client/wallet_content.hpp"
#include "runtime/log/be_fields.hpp"

namespace lethe {

/// Writes into memory that is wiped, and never grows.
struct byte_writer {
  std::span<std::byte> left;
  void put(bytes_view bytes) {
    check(bytes.size() <= left.size());
    std::ranges::copy(bytes, left.begin());
    left = left.subspan(bytes.size());
  }
  template <class T>
  void number(T value) {
    std::byte field[sizeof(T)];
    store_be(value, field);
    put(field);
  }
};

inline void copy_into(std::span<std::byte> to, bytes_view from) {
  if (from.size() == to.size()) std::ranges::copy(from, to.begin());
}

inline void put_choices(byte_writer& to, const change_choices& c) {
  for (bytes_view part : {bytes_view(c.key), bytes_view(c.challenge_digest), bytes_view(c.nonce),
                          bytes_view(c.salt), bytes_view(c.factor)})
    to.put(part);
}

inline result<change_choices> read_choices(field_reader& in) {
  change_choices c;
  auto key = read_spki(in.bytes(token_spki_bytes));
  if (!key) return key.why();
  c.key = *key;
  copy_into(c.challenge_digest, in.bytes(sizeof c.challenge_digest));
  copy_into(c.nonce, in.bytes(sizeof c.nonce));
  copy_into(c.salt, in.bytes(sizeof c.salt));
  copy_into(c.factor, in.bytes(sizeof c.factor));
  return c;
}

}  // namespace lethe
