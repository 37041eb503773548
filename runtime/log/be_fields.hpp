#pragma once

#include <vector>

#include "runtime/base/check.hpp"
#include "runtime/crypto/big_endian.hpp"

namespace lethe {

/// Takes big-endian fields off the front. Once one was missing, all that follow are empty or zero.
class field_reader {
 public:
  explicit field_reader(bytes_view bytes) : left_(bytes) {}

  template <class T>
  T number() {
    bytes_view field = bytes(sizeof(T));
    return field.empty() ? T{} : load_be<T>(field.data());
  }
  bytes_view bytes(size_t count) {
    good_ = good_ && count <= left_.size();
    if (!good_) return {};
    bytes_view field = left_.first(count);
    left_ = left_.subspan(count);
    return field;
  }
  /// Behind its u16 length.
  bytes_view sized() { return bytes(number<uint16_t>()); }
  /// Behind its u16 length, which must be that of `to`.
  void sized_into(std::span<std::byte> to) {
    bytes_view field = sized();
    good_ = good_ && field.size() == to.size();
    if (good_) std::memcpy(to.data(), field.data(), field.size());
  }
  template <class T>
  T sized_number() {
    std::byte field[sizeof(T)];
    sized_into(field);
    return good_ ? load_be<T>(field) : T{};
  }

  bytes_view rest() const { return left_; }
  bool good() const { return good_; }
  /// Nothing was missing, and nothing is left.
  bool done() const { return good_ && left_.empty(); }

 private:
  bytes_view left_;
  bool good_ = true;
};

inline void append(std::vector<std::byte>& out, bytes_view bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
void append_be(std::vector<std::byte>& out, T value) {
  std::byte field[sizeof(T)];
  store_be(value, field);
  append(out, field);
}

/// Behind its u16 length.
inline void append_sized(std::vector<std::byte>& out, bytes_view bytes) {
  check(bytes.size() <= UINT16_MAX);
  append_be(out, uint16_t(bytes.size()));
  append(out, bytes);
}

template <class T>
void append_sized_be(std::vector<std::byte>& out, T value) {
  append_be(out, uint16_t(sizeof(T)));
  append_be(out, value);
}

}  // namespace lethe
