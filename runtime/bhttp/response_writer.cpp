#include "runtime/bhttp/response_writer.hpp"

#include "runtime/base/varint.hpp"

namespace lethe {

result<void> bhttp_response_writer::head(uint32_t status, std::span<const bhttp_field> fields,
                                         std::pmr::string& out) {
  check(part_ == part::head);
  if (status < 200 || status > 599)
    return fail("bhttp response: status {} is not a final one; say 200 to 599", status);
  if (auto ok = check_fields(fields, "bhttp response: header section"); !ok) return ok;
  append_varint(out, 3);  // framing: a response of indeterminate length
  append_varint(out, status);
  append_lines(fields, out);
  append_varint(out, 0);
  part_ = part::content;
  return {};
}

void bhttp_response_writer::content(std::string_view piece, std::pmr::string& out) {
  check(part_ == part::content);
  if (piece.empty()) return;  // a chunk of length 0 would end the content
  append_varint(out, piece.size());
  out.append(piece);
}

void bhttp_response_writer::end(std::pmr::string& out) {
  check(part_ == part::content);
  append_varint(out, 0);  // of the content
  append_varint(out, 0);  // of the trailers
  part_ = part::ended;
}

}  // namespace lethe
