#include <charconv>
#include <cmath>

#include "runtime/template/json.hpp"
#include "runtime/template/unicode.hpp"

namespace lethe::jinja {
namespace {

class json_reader {
 public:
  json_reader(rendering& r, std::string_view text, std::string_view what)
      : r_(r), text_(text), what_(what) {}

  value read() {
    r_.step(text_.size());
    if (!is_utf8(text_)) return r_.fail("{}: not valid UTF-8", what_);
    const value v = any(0);
    skip_blanks();
    return at_ == text_.size() ? v : refuse();
  }

 private:
  value refuse() { return r_.fail("{}: not valid JSON at byte {}", what_, at_); }
  char now() const { return at_ < text_.size() ? text_[at_] : char(0); }
  void skip_blanks() {
    while (now() == ' ' || now() == '\n' || now() == '\t' || now() == '\r') ++at_;
  }
  bool skip(char c) {
    skip_blanks();
    const bool is = now() == c && at_ < text_.size();
    at_ += is;
    return is;
  }
  value word(std::string_view w, const value& v) {
    if (!text_.substr(at_).starts_with(w)) return refuse();
    at_ += w.size();
    return v;
  }

  value any(uint32_t depth) {
    if (!r_.step()) return {};
    if (depth > limits::template_json_depth_max) {
      return r_.fail("{}: more than {} nested values", what_, limits::template_json_depth_max);
    }
    skip_blanks();
    switch (now()) {
      case '{':
        return dict(depth);
      case '[':
        return list(depth);
      case '"':
        return text();
      case 't':
        return word("true", value(true));
      case 'f':
        return word("false", value(false));
      case 'n':
        return word("null", none_value());
      default:
        return number();
    }
  }

  value list(uint32_t depth) {
    sequence* s = r_.make_sequence();
    ++at_;
    if (skip(']')) return r_.list_of(s);
    do r_.push(*s, any(depth + 1));
    while (r_.ok() && skip(','));
    return r_.ok() && skip(']') ? r_.list_of(s) : refuse();
  }

  value dict(uint32_t depth) {
    dictionary* d = r_.make_dictionary();
    ++at_;
    if (skip('}')) return value(d);
    do {
      skip_blanks();
      if (now() != '"') return refuse();
      const value key = text();
      if (!r_.ok() || !skip(':')) return refuse();
      const value held = any(depth + 1);
      if (r_.ok()) r_.put(*d, key, held);
    } while (r_.ok() && skip(','));
    return r_.ok() && skip('}') ? value(d) : refuse();
  }

  size_t digits() {
    const size_t from = at_;
    while (now() >= '0' && now() <= '9') ++at_;
    return at_ - from;
  }

  value number() {
    const size_t from = at_;
    bool whole = true;
    if (now() == '-') ++at_;
    const bool zero = now() == '0';
    const size_t count = digits();
    if (count == 0 || (zero && count > 1)) return refuse();
    if (now() == '.') {
      ++at_;
      whole = false;
      if (digits() == 0) return refuse();
    }
    if (now() == 'e' || now() == 'E') {
      ++at_;
      whole = false;
      if (now() == '+' || now() == '-') ++at_;
      if (digits() == 0) return refuse();
    }
    return number_of(text_.substr(from, at_ - from), whole);
  }

  value number_of(std::string_view t, bool whole) {
    int64_t i = 0;
    const char* end = t.data() + t.size();
    if (whole && std::from_chars(t.data(), end, i).ec == std::errc()) return value(i);
    double d = 0;
    if (std::from_chars(t.data(), end, d).ec == std::errc()) return value(d);
    // Out of a double's range: Python reads 0 or infinity; the sign of the exponent tells.
    const size_t e = t.find_first_of("eE");
    const bool small = e != t.npos && t.substr(e + 1).starts_with('-');
    return small ? value(t[0] == '-' ? -0.0 : 0.0) : refuse();
  }

  value text() {
    const size_t from = ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') {
      if (static_cast<unsigned char>(text_[at_++]) < 0x20) return refuse();
    }
    if (now() == '"') return value(r_.keep(text_.substr(from, at_++ - from)));
    return escaped(from);
  }

  value escaped(size_t from) {
    text_sink out(r_);
    while (r_.ok() && at_ < text_.size()) {
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) return refuse();
      if (c != '"' && c != '\\') {
        ++at_;
        continue;
      }
      out.append(text_.substr(from, at_++ - from));
      if (c == '"') return value(out.view());
      if (!escape(out)) return refuse();
      from = at_;
    }
    return refuse();
  }

  bool escape(text_sink& out) {
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    const char c = now();
    ++at_;
    if (c == 'u') return unicode_escape(out);
    const size_t i = c ? from.find(c) : from.npos;
    if (i != from.npos) out.append(to[i]);
    return i != from.npos;
  }

  bool unicode_escape(text_sink& out) {
    char32_t c = four_digits();
    if (c >= 0xD800 && c < 0xDC00) {
      if (!text_.substr(std::min(at_, text_.size())).starts_with("\\u")) return false;
      at_ += 2;
      const char32_t low = four_digits();
      if (low < 0xDC00 || low >= 0xE000) return false;
      c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    } else if (c >= 0xDC00 && c < 0xE000) {
      return false;
    }
    if (c > 0x10FFFF) return false;
    out.append(encode(c));
    return true;
  }

  /// Above every code point where there are no four digits.
  char32_t four_digits() {
    uint32_t c = 0;
    const auto part = text_.substr(std::min(at_, text_.size()), 4);
    const auto end = std::from_chars(part.data(), part.data() + part.size(), c, 16);
    if (part.size() < 4 || end.ptr != part.data() + 4 || end.ec != std::errc()) return 0x110000;
    at_ += 4;
    return c;
  }

  rendering& r_;
  std::string_view text_, what_;
  size_t at_ = 0;
};

}  // namespace

value read_json(rendering& r, std::string_view text, std::string_view what) {
  return json_reader(r, text, what).read();
}

}  // namespace lethe::jinja
