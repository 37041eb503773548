#include "runtime/json/json_slice.hpp"

#include <charconv>

#include "runtime/base/utf8.hpp"
#include "runtime/json/scan_json.hpp"

namespace lethe {

namespace {

uint32_t hex4(std::string_view four) {
  uint32_t code = 0;
  std::from_chars(four.data(), four.data() + 4, code, 16);
  return code;
}

/// Appends what the escape at body[at] stands for; gives the position behind it.
size_t append_escape(std::pmr::string& out, std::string_view body, size_t at) {
  char c = body[at + 1];
  if (c != 'u') {
    constexpr std::string_view from = "bfnrt", to = "\b\f\n\r\t";
    size_t i = from.find(c);
    out += i == from.npos ? c : to[i];
    return at + 2;
  }
  uint32_t code = hex4(body.substr(at + 2));
  if (code < 0xd800 || code >= 0xdc00) return utf8::append(out, code), at + 6;
  uint32_t low = hex4(body.substr(at + 8));
  utf8::append(out, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
  return at + 12;
}

}  // namespace

json_kind json_slice::kind() const {
  switch (raw_.front()) {
    case '{':
      return json_kind::object;
    case '[':
      return json_kind::list;
    case '"':
      return json_kind::text;
    case 't':
    case 'f':
      return json_kind::boolean;
    case 'n':
      return json_kind::null;
    default:
      return json_kind::number;
  }
}

std::optional<bool> json_slice::boolean() const {
  if (!is(json_kind::boolean)) return {};
  return raw_.front() == 't';
}

std::optional<double> json_slice::number() const {
  if (!is(json_kind::number)) return {};
  double value = 0;
  auto [rest, wrong] = std::from_chars(raw_.data(), raw_.data() + raw_.size(), value);
  if (wrong == std::errc::result_out_of_range) return {};
  return value;
}

std::optional<int64_t> json_slice::whole() const {
  if (!is(json_kind::number)) return {};
  int64_t value = 0;
  const char* end = raw_.data() + raw_.size();
  auto [rest, wrong] = std::from_chars(raw_.data(), end, value);
  if (wrong != std::errc() || rest != end) return {};
  return value;
}

std::optional<std::pmr::string> json_slice::text(std::pmr::memory_resource* memory) const {
  if (!is(json_kind::text)) return {};
  std::string_view body = raw_.substr(1, raw_.size() - 2);
  std::pmr::string out(memory);
  out.reserve(body.size());
  for (size_t at = 0; at < body.size();) {
    size_t plain = std::min(body.find('\\', at), body.size());
    out.append(body.substr(at, plain - at));
    at = plain < body.size() ? append_escape(out, body, plain) : plain;
  }
  return out;
}

bool json_slice::says(std::string_view word) const {
  if (!is(json_kind::text)) return false;
  std::string_view body = raw_.substr(1, raw_.size() - 2);
  if (body.find('\\') == body.npos) return body == word;
  std::byte room[512];
  std::pmr::monotonic_buffer_resource memory(room, sizeof room, std::pmr::null_memory_resource());
  return body.size() < sizeof room / 2 && *text(&memory) == word;
}

bool json_slice::each(const std::function<bool(json_slice)>& take) const {
  json_scan scan(raw_, 1);
  for (scan.skip_blanks(); scan.now() != ']'; scan.skip_blanks()) {
    size_t begin = scan.at();
    scan.skip_value();
    if (!take(json_slice(scan.from(begin)))) return false;
    scan.skip_blanks();
    if (scan.now() == ',') scan.next();
  }
  return true;
}

bool json_slice::each(const std::function<bool(json_slice, json_slice)>& take) const {
  json_scan scan(raw_, 1);
  for (scan.skip_blanks(); scan.now() != '}'; scan.skip_blanks()) {
    size_t begin = scan.at();
    scan.skip_value();
    json_slice key(scan.from(begin));
    scan.skip_blanks();
    scan.next();  // the colon
    scan.skip_blanks();
    begin = scan.at();
    scan.skip_value();
    if (!take(key, json_slice(scan.from(begin)))) return false;
    scan.skip_blanks();
    if (scan.now() == ',') scan.next();
  }
  return true;
}

std::optional<json_slice> json_slice::find(std::string_view key) const {
  std::optional<json_slice> found;
  if (is(json_kind::object))
    each([&](json_slice k, json_slice v) {
      if (k.says(key)) found = v;
      return true;
    });
  return found;
}

size_t json_slice::count() const {
  size_t n = 0;
  if (is(json_kind::list)) each([&](json_slice) { return ++n, true; });
  if (is(json_kind::object)) each([&](json_slice, json_slice) { return ++n, true; });
  return n;
}

}  // namespace lethe
