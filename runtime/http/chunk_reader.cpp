#include "runtime/http/chunk_reader.hpp"

#include <algorithm>

namespace lethe {
namespace {

constexpr uint32_t digits_max = 12;   // leading zeros are allowed, but not many
constexpr uint32_t loose_max = 4096;  // of one body

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

chunk_reader::step chunk_reader::read(std::string_view input) {
  step s;
  while (s.consumed < input.size()) {
    if (at_ == place::data) {
      s.payload = input.substr(s.consumed, size_t(std::min<uint64_t>(left_, input.size())));
      s.consumed += s.payload.size();
      left_ -= s.payload.size();
      if (left_ == 0) at_ = place::data_end;
      return s;
    }
    s.what = take(input[s.consumed++]);
    if (s.what != verdict::more) return s;
  }
  return s;
}

chunk_reader::verdict chunk_reader::take(char c) {
  switch (at_) {
    case place::size:
      return take_size(c);
    case place::extension:
      if (c == '\r') at_ = place::size_end;
      return c == '\n' || ++loose_ > loose_max ? verdict::bad : verdict::more;
    case place::size_end:
      at_ = left_ > 0 ? place::data : place::trailer;
      digits_ = 0;
      return c == '\n' ? verdict::more : verdict::bad;
    case place::data_end:
      at_ = place::data_lf;
      return c == '\r' ? verdict::more : verdict::bad;
    case place::data_lf:
      at_ = place::size;
      return c == '\n' ? verdict::more : verdict::bad;
    default:
      return take_trailer(c);
  }
}

chunk_reader::verdict chunk_reader::take_size(char c) {
  if (int value = hex_value(c); value >= 0) {
    left_ = left_ * 16 + uint64_t(value);
    return ++digits_ > digits_max ? verdict::bad : verdict::more;
  }
  if (digits_ == 0) return verdict::bad;
  if (c == '\r') return at_ = place::size_end, verdict::more;
  at_ = place::extension;
  return c == ';' || c == ' ' || c == '\t' ? verdict::more : verdict::bad;
}

chunk_reader::verdict chunk_reader::take_trailer(char c) {
  if (at_ == place::trailer) {
    if (c == '\r') return at_ = place::trailer_end, verdict::more;
    line_empty_ = false;
    return c == '\n' || ++loose_ > loose_max ? verdict::bad : verdict::more;
  }
  if (at_ != place::trailer_end || c != '\n') return verdict::bad;
  if (line_empty_) return at_ = place::last, verdict::done;
  line_empty_ = true;
  at_ = place::trailer;
  return verdict::more;
}

}  // namespace lethe
