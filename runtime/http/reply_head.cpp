#include "runtime/http/reply_head.hpp"

#include "runtime/http/head_text.hpp"
#include "runtime/http/request_head.hpp"

namespace lethe {

using namespace head_text;

namespace {

error bad(const char* what) { return fail("its answer is not well-formed HTTP: {}", what); }

/// "HTTP/1.1 200 and a reason that nobody reads"
result<http_reply> read_status_line(std::string_view line) {
  bool well_formed = line.size() >= 12 && line.starts_with("HTTP/1.") && is_digit(line[7]) &&
                     line[8] == ' ' && std::ranges::all_of(line.substr(9, 3), is_digit) &&
                     (line.size() == 12 || line[12] == ' ') && line[9] >= '1' && line[9] <= '5';
  if (!well_formed) return bad("its first line");
  http_reply r;
  for (char digit : line.substr(9, 3)) r.status = r.status * 10 + (digit - '0');
  r.keep_alive = line[7] != '0';
  return r;
}

struct seen_frames {
  uint32_t lengths = 0, encodings = 0;
};

result<void> note_field(std::string_view name, std::string_view value, http_reply& r,
                        seen_frames& seen) {
  if (same_name(name, "content-length")) {
    ++seen.lengths;
    bool number = !value.empty() && std::ranges::all_of(value, is_digit);
    if (!number || !read_digits(value, r.content_length)) return bad("its length");
  } else if (same_name(name, "transfer-encoding")) {
    ++seen.encodings;
    if (!same_name(value, "chunked")) return bad("a transfer coding other than chunked");
  } else if (same_name(name, "connection") && lists(value, "close")) {
    r.keep_alive = false;
  }
  return {};
}

/// RFC 9112, section 6.3.
result<void> find_frame(http_reply& r, const seen_frames& seen, bool head_only) {
  if (seen.lengths > 1 || seen.encodings > 1 || seen.lengths + seen.encodings > 1)
    return bad("its end is said twice");
  bool bare = head_only || r.status < 200 || r.status == 204 || r.status == 304;
  r.frame = bare             ? body_frame::none
            : seen.encodings ? body_frame::chunks
            : seen.lengths   ? body_frame::length
                             : body_frame::until_close;
  if (r.frame == body_frame::until_close) r.keep_alive = false;
  return {};
}

}  // namespace

std::string_view http_reply::field(std::string_view name) const {
  auto at = std::ranges::find_if(fields, [&](const auto& f) { return same_name(f.first, name); });
  return at == fields.end() ? std::string_view{} : at->second;
}

result<http_reply> read_reply(std::string_view text, bool head_only, uint32_t fields_max) {
  if (!text.ends_with(head_end)) return bad("its head is cut");
  auto r = read_status_line(cut(text, "\r\n"));
  if (!r) return r.why();
  seen_frames seen;
  for (auto line = cut(text, "\r\n"); !line.empty(); line = cut(text, "\r\n")) {
    if (r->fields.size() == fields_max) return bad("too many fields");
    auto colon = line.find(':');
    if (colon == line.npos) return bad("a field without a colon");
    auto name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
    if (!is_token(name) || !is_field_value(value)) return bad("a field");
    r->fields.emplace_back(name, value);
    if (auto ok = note_field(name, value, *r, seen); !ok) return ok.why();
  }
  if (auto ok = find_frame(*r, seen, head_only); !ok) return ok.why();
  return r;
}

}  // namespace lethe
