#include "runtime/http/request_head.hpp"

#include <algorithm>

#include "runtime/http/head_text.hpp"

namespace lethe {

using namespace head_text;

namespace {

constexpr size_t method_bytes_max = 16;

/// 0, or the status of the refusal.
int read_version(std::string_view text, http_head& head) {
  bool well_formed = text.size() == 8 && text.starts_with("HTTP/") && is_digit(text[5]) &&
                     text[6] == '.' && is_digit(text[7]);
  if (!well_formed) return 400;
  if (text[5] != '1') return 505;
  head.old = text[7] == '0';
  head.keep_alive = !head.old;
  return 0;
}

int read_target(std::string_view target, http_head& head) {
  bool visible = std::ranges::all_of(target, [](char c) { return c > ' ' && c < 0x7f; });
  if (!visible) return 400;
  if (target.starts_with("http://") || target.starts_with("https://")) {
    auto at = target.find('/', target.find("//") + 2);
    target = at == target.npos ? "/" : target.substr(at);
  }
  if (!target.starts_with('/') && target != "*") return 400;
  head.path = cut(target, "?");
  head.query = target;
  return 0;
}

int read_request_line(std::string_view line, http_head& head) {
  head.method = cut(line, " ");
  if (!is_token(head.method)) return 400;
  if (head.method.size() > method_bytes_max) return 501;
  auto target = cut(line, " ");
  if (int status = read_version(line, head)) return status;
  return read_target(target, head);
}

int read_length(std::string_view value, http_head& head) {
  if (value.empty() || !std::ranges::all_of(value, is_digit)) return 400;
  return read_digits(value, head.content_length) ? 0 : 413;
}

struct seen_fields {
  uint32_t hosts = 0, lengths = 0, encodings = 0;
};

int note_field(const http_field& f, http_head& head, seen_fields& seen) {
  if (same_name(f.name, "host")) {
    ++seen.hosts;
  } else if (same_name(f.name, "content-length")) {
    ++seen.lengths;
    return read_length(f.value, head);
  } else if (same_name(f.name, "transfer-encoding")) {
    ++seen.encodings;
    if (!same_name(f.value, "chunked")) return 501;
    head.chunked = true;
  } else if (same_name(f.name, "connection")) {
    if (lists(f.value, "close")) head.keep_alive = false;
  } else if (same_name(f.name, "expect")) {
    if (!same_name(f.value, "100-continue")) return 417;
    head.wants_continue = !head.old;
  }
  return 0;
}

int read_field(std::string_view line, http_head& head, seen_fields& seen) {
  auto colon = line.find(':');
  if (colon == line.npos) return 400;
  http_field f{line.substr(0, colon), trimmed(line.substr(colon + 1))};
  if (!is_token(f.name) || !is_field_value(f.value)) return 400;
  head.fields.push_back(f);
  return note_field(f, head, seen);
}

/// Where the body ends must be said once (RFC 9112, section 6.3).
int check_framing(const http_head& head, const seen_fields& seen) {
  if (seen.hosts > 1 || (seen.hosts == 0 && !head.old)) return 400;
  if (seen.lengths > 1 || seen.encodings > 1) return 400;
  if (seen.encodings == 1 && (seen.lengths == 1 || head.old)) return 400;
  return 0;
}

}  // namespace

bool is_token(std::string_view text) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [marks](char c) {
    char l = lower(c);
    return is_digit(c) || (l >= 'a' && l <= 'z') || marks.find(c) != marks.npos;
  });
}

bool is_field_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    auto u = static_cast<unsigned char>(c);
    return u == '\t' || (u >= ' ' && u != 0x7f);
  });
}

std::string_view http_head::field(std::string_view name) const {
  auto at = std::ranges::find_if(fields, [&](const auto& f) { return same_name(f.name, name); });
  return at == fields.end() ? std::string_view{} : at->value;
}

std::variant<std::optional<size_t>, http_refusal> find_head_end(std::string_view input,
                                                                size_t head_bytes_max) {
  for (size_t line = 0;;) {
    auto end = input.find('\n', line);
    if (end == input.npos) break;
    if (end >= head_bytes_max) return http_refusal{431};
    if (end == line || input[end - 1] != '\r') return http_refusal{400};
    if (end == line + 1) return std::optional(end + 1);
    line = end + 1;
  }
  if (input.size() >= head_bytes_max) return http_refusal{431};
  return std::optional<size_t>{};
}

std::variant<http_head, http_refusal> read_head(std::string_view text, const http_limits& limits,
                                                std::pmr::memory_resource* memory) {
  if (!text.ends_with(head_end)) return http_refusal{400};
  http_head head{.fields = std::pmr::vector<http_field>(memory)};
  head.fields.reserve(16);
  if (int status = read_request_line(cut(text, "\r\n"), head)) return http_refusal{status};
  seen_fields seen;
  for (auto line = cut(text, "\r\n"); !line.empty(); line = cut(text, "\r\n")) {
    if (head.fields.size() == limits.fields_max) return http_refusal{431};
    if (int status = read_field(line, head, seen)) return http_refusal{status};
  }
  if (int status = check_framing(head, seen)) return http_refusal{status};
  if (head.content_length > limits.body_bytes_max) return http_refusal{413};
  return head;
}

}  // namespace lethe
