#include "runtime/bhttp/response_reader.hpp"

#include <algorithm>

#include "runtime/base/varint.hpp"

namespace lethe {

uint32_t bhttp_response_reader::status() const {
  check(has_head());
  return status_;
}

std::span<const bhttp_field> bhttp_response_reader::fields() const {
  check(has_head());
  return head_.fields;
}

std::span<const bhttp_field> bhttp_response_reader::trailers() const {
  check(done());
  return tail_.fields;
}

error bhttp_response_reader::refuse(error why) {
  part_ = part::failed;
  return why;
}

result<void> bhttp_response_reader::feed(std::string_view piece, std::pmr::string& content) {
  if (part_ == part::failed) return fail("bhttp response: was refused before; read no further");
  if (auto ok = read(piece, content); !ok) return refuse(ok.why());
  return {};
}

result<void> bhttp_response_reader::read(std::string_view piece, std::pmr::string& content) {
  while (!piece.empty()) {
    if (part_ == part::content) {
      take_content(piece, content);
      continue;
    }
    if (part_ == part::padding) {
      if (piece.find_first_not_of('\0') != piece.npos)
        return fail("bhttp response: bytes other than zero padding follow its end");
      return {};
    }
    // An item is read where it lies, unless an earlier piece held its beginning.
    const size_t had = held_.size();
    if (had) held_.insert(held_.end(), piece.begin(), piece.end());
    const auto used = read_item(had ? std::string_view(held_.data(), held_.size()) : piece);
    if (!used) return used.why();
    if (*used == 0) {
      if (!had) held_.assign(piece.begin(), piece.end());
      return {};
    }
    piece.remove_prefix(*used - had);
    held_.clear();
  }
  return {};
}

void bhttp_response_reader::take_content(std::string_view& piece, std::pmr::string& content) {
  const auto now = piece.substr(0, std::min<uint64_t>(piece.size(), content_left_));
  content.append(now);
  piece.remove_prefix(now.size());
  content_left_ -= now.size();
  if (content_left_ == 0) part_ = known_length_ ? part::trailers : part::content_length;
}

/// How many bytes of `in` the item took; 0 if it is not all there.
result<size_t> bhttp_response_reader::read_item(std::string_view in) {
  if (part_ == part::fields || part_ == part::trailers) return read_section(in);
  auto rest = in;
  const auto number = take_varint(rest);
  if (!number) return size_t{0};
  if (auto ok = take_number(*number); !ok) return ok.why();
  return in.size() - rest.size();
}

result<void> bhttp_response_reader::take_number(uint64_t number) {
  if (part_ == part::framing) {
    if (number != 1 && number != 3)
      return fail("bhttp response: its framing indicator is not a response's (1 or 3)");
    known_length_ = number == 1;
    part_ = part::status;
    return {};
  }
  if (part_ == part::status) {
    if (number < 100 || number > 599)
      return fail("bhttp response: its status is not one of 100 to 599");
    status_ = uint32_t(number);
    part_ = part::fields;
    return {};
  }
  check(part_ == part::content_length);
  if (number > content_bytes_max_ - content_bytes_)
    return fail("bhttp response: has more than {} bytes of content", content_bytes_max_);
  content_bytes_ += number;
  content_left_ = number;
  part_ = number ? part::content : part::trailers;
  return {};
}

result<size_t> bhttp_response_reader::read_section(std::string_view in) {
  const bool trailers = part_ == part::trailers;
  const std::string_view where =
      trailers ? "bhttp response: trailer section" : "bhttp response: header section";
  const auto found = find_section(in, known_length_, seen_, where);
  if (!found) return found.why();
  if (!*found) return size_t{0};
  seen_ = 0;
  if (auto ok = keep((*found)->lines, where, trailers ? tail_ : head_); !ok) return ok.why();
  if (trailers) {
    part_ = part::padding;
  } else if (status_ >= 200) {
    part_ = part::content_length;
  } else {
    if (++informational_ > limits::bhttp_informational_max)
      return fail("bhttp response: more than {} informational responses come first",
                  limits::bhttp_informational_max);
    part_ = part::status;
  }
  return (*found)->bytes;
}

result<void> bhttp_response_reader::keep(std::string_view lines, std::string_view where,
                                         kept_section& section) {
  section.fields.clear();
  section.lines.assign(lines.begin(), lines.end());
  return read_fields({section.lines.data(), section.lines.size()}, where, section.fields);
}

result<void> bhttp_response_reader::finish() {
  if (part_ == part::failed) return fail("bhttp response: was refused before; read no further");
  const bool final_status = part_ > part::status && status_ >= 200;
  const bool inside_chunks = part_ == part::content_length && !known_length_ && content_bytes_ > 0;
  if (!held_.empty() || !final_status || inside_chunks || part_ == part::content)
    return refuse(fail("bhttp response: ends too early; the connection may have been cut"));
  if (part_ == part::fields) head_.fields.clear();  // an informational response's
  part_ = part::padding;
  return {};
}

}  // namespace lethe
