#include "runtime/bhttp/request.hpp"

#include <algorithm>

#include "runtime/base/varint.hpp"

namespace lethe {
namespace {

constexpr std::string_view headers = "bhttp request: header section";
constexpr std::string_view trailers = "bhttp request: trailer section";

bool is_scheme(std::string_view s) {
  const auto letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  return !s.empty() && letter(s[0]) && std::all_of(s.begin(), s.end(), [letter](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

bool is_visible(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

bool is_path(std::string_view s) { return s == "*" || (s.starts_with('/') && is_visible(s)); }

/// RFC 9292 section 3.4.
result<void> check_control(std::string_view method, std::string_view scheme,
                           std::string_view authority, std::string_view path) {
  for (auto text : {method, scheme, authority, path}) {
    if (text.size() > limits::bhttp_control_bytes_max)
      return fail("bhttp request: method, scheme, authority and path take at most {} bytes each",
                  limits::bhttp_control_bytes_max);
  }
  if (!is_http_token(method, false)) return fail("bhttp request: its method is not a token");
  if (!is_scheme(scheme)) return fail("bhttp request: its scheme is not one; say https");
  if (!is_visible(authority))
    return fail("bhttp request: its authority has a blank, a control or a byte above 126");
  if (!is_path(path))
    return fail("bhttp request: its path does not begin with /, or has characters to be escaped");
  return {};
}

error ends_inside(std::string_view part) { return fail("bhttp request: ends inside {}", part); }

error too_much_content(uint64_t bytes_max) {
  return fail("bhttp request: has more than {} bytes of content; send less", bytes_max);
}

result<void> take_control(std::string_view& in, bhttp_request_view& to) {
  for (auto* text : {&to.method, &to.scheme, &to.authority, &to.path}) {
    const auto size = take_varint(in);
    if (!size || *size > in.size()) return ends_inside("method, scheme, authority or path");
    *text = in.substr(0, *size);
    in.remove_prefix(*size);
  }
  return check_control(to.method, to.scheme, to.authority, to.path);
}

result<void> take_section(std::string_view& in, bool known_length, std::string_view where,
                          bhttp_fields& fields) {
  if (in.empty()) return {};  // left out (section 3.8)
  size_t seen = 0;
  auto found = find_section(in, known_length, seen, where);
  if (!found) return found.why();
  if (!*found) return fail("{} ends too early", where);
  in.remove_prefix((*found)->bytes);
  return read_fields((*found)->lines, where, fields);
}

result<void> take_known_content(std::string_view& in, uint64_t bytes_max, bhttp_request_view& to) {
  if (in.empty()) return {};
  const auto size = take_varint(in);
  if (!size) return ends_inside("the length of its content");
  if (*size > bytes_max) return too_much_content(bytes_max);
  if (*size > in.size()) return ends_inside("its content");
  to.in_place = in.substr(0, *size);
  in.remove_prefix(*size);
  return {};
}

/// One chunk stays where it is; several are measured, then joined.
result<void> take_chunks(std::string_view& in, uint64_t bytes_max, bhttp_request_view& to) {
  if (in.empty()) return {};
  const auto begin = in;
  uint64_t bytes = 0, chunks = 0;
  for (;;) {
    const auto size = take_varint(in);
    if (!size) return ends_inside("its content; a chunk of length 0 ends it");
    if (*size == 0) break;
    if (*size > bytes_max - bytes) return too_much_content(bytes_max);
    if (*size > in.size()) return ends_inside("a chunk of its content");
    if (chunks++ == 0) to.in_place = in.substr(0, *size);
    bytes += *size;
    in.remove_prefix(*size);
  }
  if (chunks < 2) return {};
  to.in_place = {};
  to.joined.reserve(bytes);
  for (auto again = begin; to.joined.size() < bytes;) {
    const auto piece = again.substr(0, *take_varint(again));
    to.joined.insert(to.joined.end(), piece.begin(), piece.end());
    again.remove_prefix(piece.size());
  }
  return {};
}

}  // namespace

result<void> write_request(const bhttp_request& r, std::pmr::string& out) {
  if (auto ok = check_control(r.method, r.scheme, r.authority, r.path); !ok) return ok;
  if (auto ok = check_fields(r.fields, headers); !ok) return ok;
  append_varint(out, 0);  // framing: a request of known length
  for (auto text : {r.method, r.scheme, r.authority, r.path}) {
    append_varint(out, text.size());
    out.append(text);
  }
  append_varint(out, lines_bytes(r.fields));
  append_lines(r.fields, out);
  append_varint(out, r.content.size());
  out.append(r.content);
  append_varint(out, 0);  // no trailers
  return {};
}

result<bhttp_request_view> read_request(std::string_view in, std::pmr::memory_resource* memory,
                                        uint64_t content_bytes_max) {
  const auto framing = take_varint(in);
  if (!framing) return ends_inside("its framing indicator");
  if (*framing != 0 && *framing != 2)
    return fail("bhttp request: its framing indicator is not a request's (0 or 2)");
  const bool known_length = *framing == 0;

  bhttp_request_view request(memory);
  if (auto ok = take_control(in, request); !ok) return ok.why();
  if (auto ok = take_section(in, known_length, headers, request.fields); !ok) return ok.why();
  auto content = known_length ? take_known_content(in, content_bytes_max, request)
                              : take_chunks(in, content_bytes_max, request);
  if (!content) return content.why();
  if (auto ok = take_section(in, known_length, trailers, request.trailers); !ok) return ok.why();
  if (in.find_first_not_of('\0') != in.npos)
    return fail("bhttp request: bytes other than zero padding follow its end");
  return request;
}

}  // namespace lethe
