#include "runtime/bhttp/fields.hpp"

#include <algorithm>
#include <array>

#include "runtime/base/limits.hpp"
#include "runtime/base/varint.hpp"

namespace lethe {
namespace {

constexpr std::array<std::string_view, 6> connection_fields = {
    "connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"};

bool is_token_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// RFC 9110 section 5.5: no controls but the tab; bytes above 127 are allowed.
bool is_value(std::string_view v) {
  if (!v.empty() && (is_blank(v.front()) || is_blank(v.back()))) return false;
  return std::none_of(v.begin(), v.end(),
                      [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

/// What is wrong with a field, or null.
const char* fault_of(const bhttp_field& f) {
  if (!is_http_token(f.name, true))
    return "its name is not a token in lower case (RFC 9292 section 3.6)";
  if (std::find(connection_fields.begin(), connection_fields.end(), f.name) !=
      connection_fields.end())
    return "it is about a connection; leave it out (RFC 9292 section 3.6)";
  if (!is_value(f.value))
    return "its value has a control character, or a blank at an end (RFC 9110 section 5.5)";
  return nullptr;
}

error too_many_bytes(std::string_view where) {
  return fail("{} takes more than {} bytes; send fewer or shorter fields", where,
              limits::bhttp_section_bytes_max);
}

error too_many_fields(std::string_view where) {
  return fail("{} has more than {} fields; send fewer", where, limits::bhttp_fields_max);
}

std::optional<std::string_view> take_text(std::string_view& in) {
  auto size = take_varint(in);
  if (!size || *size > in.size()) return {};
  auto text = in.substr(0, *size);
  in.remove_prefix(*size);
  return text;
}

result<std::optional<bhttp_section>> find_known(std::string_view in, std::string_view where) {
  auto rest = in;
  const auto size = take_varint(rest);
  if (!size) return std::optional<bhttp_section>();
  if (*size > limits::bhttp_section_bytes_max) return too_many_bytes(where);
  if (*size > rest.size()) return std::optional<bhttp_section>();
  return std::optional(bhttp_section{rest.substr(0, *size), in.size() - rest.size() + *size});
}

}  // namespace

bool is_http_token(std::string_view text, bool lower) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [lower](char c) {
    return is_token_char(c) && !(lower && c >= 'A' && c <= 'Z');
  });
}

result<std::optional<bhttp_section>> find_section(std::string_view in, bool known_length,
                                                  size_t& seen, std::string_view where) {
  if (known_length) return find_known(in, where);
  constexpr auto bytes_max = limits::bhttp_section_bytes_max;
  for (;;) {
    auto rest = in.substr(seen);
    const auto name = take_varint(rest);
    if (!name) return std::optional<bhttp_section>();
    if (*name == 0)
      return std::optional(bhttp_section{in.substr(0, seen), in.size() - rest.size()});
    // A line is refused as soon as its lengths say that it is too long: little is held in wait.
    if (*name > bytes_max) return too_many_bytes(where);
    size_t end = in.size() - rest.size() + *name;
    if (end <= in.size()) {
      rest = in.substr(end);
      if (const auto value = take_varint(rest)) {
        if (*value > bytes_max) return too_many_bytes(where);
        end = in.size() - rest.size() + *value;
        if (end <= bytes_max && end <= in.size()) {
          seen = end;
          continue;
        }
      }
    }
    if (end > bytes_max) return too_many_bytes(where);
    return std::optional<bhttp_section>();
  }
}

result<void> read_fields(std::string_view lines, std::string_view where, bhttp_fields& fields) {
  for (uint32_t line = 1; !lines.empty(); ++line) {
    if (line > limits::bhttp_fields_max) return too_many_fields(where);
    const auto name = take_text(lines);
    const auto value = name ? take_text(lines) : std::nullopt;
    if (!value) return fail("{}, line {}: its lengths run past the section's end", where, line);
    const bhttp_field field{*name, *value};
    if (const char* fault = fault_of(field)) return fail("{}, line {}: {}", where, line, fault);
    fields.push_back(field);
  }
  return {};
}

result<void> check_fields(std::span<const bhttp_field> fields, std::string_view where) {
  if (fields.size() > limits::bhttp_fields_max) return too_many_fields(where);
  for (const auto& f : fields) {
    if (const char* fault = fault_of(f))
      return fail("{}, line {}: {}", where, &f - fields.data() + 1, fault);
  }
  if (lines_bytes(fields) > limits::bhttp_section_bytes_max) return too_many_bytes(where);
  return {};
}

size_t lines_bytes(std::span<const bhttp_field> fields) {
  size_t bytes = 0;
  for (const auto& f : fields)
    bytes +=
        varint_bytes(f.name.size()) + f.name.size() + varint_bytes(f.value.size()) + f.value.size();
  return bytes;
}

void append_lines(std::span<const bhttp_field> fields, std::pmr::string& out) {
  for (const auto& f : fields) {
    for (auto text : {f.name, f.value}) {
      append_varint(out, text.size());
      out.append(text);
    }
  }
}

}  // namespace lethe
