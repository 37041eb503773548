#include <cstdlib>

#include "runtime/base/utf8.hpp"
#include "runtime/json/json_slice.hpp"
#include "runtime/json/scan_json.hpp"

namespace lethe {

namespace {

/// Recursion is bounded by json_depth_max.
class checker {
 public:
  explicit checker(std::string_view text) : scan_(text) {}

  bool whole() {
    scan_.skip_blanks();
    if (!value(0)) return false;
    scan_.skip_blanks();
    return scan_.done();
  }
  size_t at() const { return scan_.at(); }
  bool too_deep() const { return too_deep_; }

 private:
  bool value(uint32_t depth) {
    if (depth > json_depth_max) return too_deep_ = true, false;
    switch (scan_.now()) {
      case '{':
        return container(depth, '}', true);
      case '[':
        return container(depth, ']', false);
      case '"':
        return text();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

  bool container(uint32_t depth, char close, bool keyed) {
    scan_.next();
    scan_.skip_blanks();
    if (took(close)) return true;
    do {
      scan_.skip_blanks();
      if (keyed && !(scan_.now() == '"' && text() && colon())) return false;
      scan_.skip_blanks();
      if (!value(depth + 1)) return false;
      scan_.skip_blanks();
    } while (took(','));
    return took(close);
  }

  bool colon() {
    scan_.skip_blanks();
    return took(':');
  }

  bool took(char c) {
    if (scan_.done() || scan_.now() != c) return false;
    scan_.next();
    return true;
  }

  bool word(std::string_view w) {
    if (!scan_.rest().starts_with(w)) return false;
    scan_.next(w.size());
    return true;
  }

  bool digits() {
    size_t begin = scan_.at();
    while (scan_.now() >= '0' && scan_.now() <= '9') scan_.next();
    return scan_.at() > begin;
  }

  bool number() {
    took('-');
    if (scan_.now() == '0')
      scan_.next();
    else if (!digits())
      return false;
    if (took('.') && !digits()) return false;
    if (!took('e') && !took('E')) return true;
    if (!took('+')) took('-');
    return digits();
  }

  bool text() {
    scan_.next();
    while (!scan_.done() && scan_.now() != '"') {
      unsigned char c = static_cast<unsigned char>(scan_.now());
      if (c < 0x20) return false;
      if (c == '\\' ? !escape() : !character()) return false;
    }
    return took('"');
  }

  bool escape() {
    scan_.next();
    if (scan_.now() == 'u') return unicode_escape();
    if (scan_.done() || std::string_view("\"\\/bfnrt").find(scan_.now()) == std::string_view::npos)
      return false;
    scan_.next();
    return true;
  }

  /// A high surrogate wants its low one, and a low one never stands alone.
  bool unicode_escape() {
    auto first = hex();
    if (!first || (*first >= 0xdc00 && *first < 0xe000)) return false;
    if (*first < 0xd800 || *first >= 0xe000) return true;
    if (!took('\\') || scan_.now() != 'u') return false;
    auto second = hex();
    return second && *second >= 0xdc00 && *second < 0xe000;
  }

  std::optional<uint32_t> hex() {
    std::string_view four = scan_.rest().substr(0, 5).substr(1);
    if (four.size() != 4) return {};
    uint32_t code = 0;
    for (char c : four) {
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0) return {};
      code = code * 16 + uint32_t(digit);
    }
    scan_.next(5);
    return code;
  }

  bool character() {
    auto c = utf8::at(scan_.rest(), 0);
    scan_.next(c.length);
    return c.state == utf8::sequence_state::whole;
  }

  json_scan scan_;
  bool too_deep_ = false;
};

}  // namespace

result<json_slice> check_json(std::string_view text) {
  checker c(text);
  if (!c.whole())
    return c.too_deep() ? fail("more than {} nested containers at byte {}", json_depth_max, c.at())
                        : fail("not valid JSON at byte {}", c.at());
  json_scan scan(text);
  scan.skip_blanks();
  size_t begin = scan.at();
  scan.skip_value();
  return json_slice(scan.from(begin));
}

}  // namespace lethe
