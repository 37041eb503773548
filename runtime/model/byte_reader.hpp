#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "runtime/base/bytes.hpp"

namespace lethe {

/// Reads a byte string from front to back. Once a read would pass the end, it and all later ones
/// give nothing and `ok()` is false, so a caller may look once after several reads.
class byte_reader {
 public:
  explicit byte_reader(bytes_view bytes) : all_(bytes) {}

  bool ok() const noexcept { return ok_; }
  uint64_t position() const noexcept { return at_; }
  uint64_t remaining() const noexcept { return all_.size() - at_; }

  template <class T>
  T number() noexcept {
    bytes_view part = bytes(sizeof(T));
    return part.empty() ? T{} : load_le<T>(part.data());
  }
  bytes_view bytes(uint64_t size) noexcept {
    if (!ok_ || size > remaining()) {
      ok_ = false;
      return {};
    }
    bytes_view part = all_.subspan(at_, size);
    at_ += size;
    return part;
  }

 private:
  bytes_view all_;
  uint64_t at_ = 0;
  bool ok_ = true;
};

/// A name out of a file, fit for an error line: printable ASCII only, cut when long.
inline std::string printable(std::string_view text) {
  constexpr size_t most = 80;
  std::string out(text.substr(0, most));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  if (text.size() > most) out += "...";
  return out;
}

}  // namespace lethe
