#include "runtime/http/http_block.hpp"

#include <fmt/format.h>

#include <cstring>

#include "runtime/base/check.hpp"

namespace lethe {

http_block::http_block(std::string_view text, size_t credit)
    : size_(text.size()),
      bytes_(std::make_unique_for_overwrite<char[]>(room())),
      from_(before),
      to_(before + size_),
      credit_(credit) {
  if (!text.empty()) std::memcpy(bytes_.get() + from_, text.data(), size_);
}

void http_block::make_chunk() {
  check(from_ == before && size_ > 0);
  char digits[before];
  char* end = fmt::format_to(digits, "{:x}\r\n", size_);
  from_ -= size_t(end - digits);
  std::memcpy(bytes_.get() + from_, digits, size_t(end - digits));
  std::memcpy(bytes_.get() + to_, "\r\n", after);
  to_ += after;
}

}  // namespace lethe
