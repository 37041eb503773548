#include "runtime/template/lexer.hpp"
#include "runtime/template/unicode.hpp"

namespace lethe::jinja {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

class unescaper {
 public:
  explicit unescaper(const token& literal)
      : text_(literal.text.substr(1, literal.text.size() - 2)), line_(literal.line) {}

  result<std::string> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c != '\\' || at_ == text_.size()) {
        out_ += c;
      } else if (!escape(text_[at_++])) {
        return fail(
            "chat template line {}: a string holds an escape that is cut short, names no "
            "character, or is \\N{{...}}",
            line_);
      }
    }
    return std::move(out_);
  }

 private:
  bool escape(char c) {
    constexpr std::string_view from = "\\'\"abfnrtv", to = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t i = from.find(c); i != from.npos) {
      out_ += to[i];
      return true;
    }
    if (c == '\n') return true;  // a line goes on
    if (c == 'N') return false;
    if (c == 'x') return number(2, 2, 16);
    if (c == 'u') return number(4, 4, 16);
    if (c == 'U') return number(8, 8, 16);
    if (c >= '0' && c <= '7') {
      --at_;
      return number(1, 3, 8);
    }
    out_ += '\\';
    out_ += c;
    return true;
  }

  bool number(size_t digits_min, size_t digits_max, int base) {
    char32_t point = 0;
    size_t digits = 0;
    for (; digits < digits_max && at_ < text_.size() && digit_of(text_[at_]) < base; ++digits) {
      point = point * char32_t(base) + char32_t(digit_of(text_[at_++]));
    }
    if (digits < digits_min || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
      return false;
    out_ += std::string_view(encode(point));
    return true;
  }

  std::string_view text_;
  std::string out_;
  size_t at_ = 0;
  uint32_t line_;
};

}  // namespace

result<std::string> unescape(const token& literal) { return unescaper(literal).run(); }

}  // namespace lethe::jinja
