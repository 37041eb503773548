#include "runtime/template/lexer.hpp"

#include <algorithm>
#include <array>

#include "runtime/template/bounds.hpp"

namespace lethe::jinja {
namespace {

constexpr std::string_view spaces = " \t\n\r\f\v";

bool is_blank(char c) { return spaces.find(c) != spaces.npos; }
bool is_digit_of(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}
bool continues_name(char c) { return starts_name(c) || is_digit_of(c); }

class scanner {
 public:
  explicit scanner(std::string_view source) : source_(source) {}

  result<std::vector<token>> scan() {
    while (why_.empty() && at_ < source_.size()) scan_data();
    if (!why_.empty()) return fail("chat template line {}: {}", line_, why_);
    add(token_kind::end, 0);
    return std::move(tokens_);
  }

 private:
  bool sees(std::string_view what) const { return source_.substr(at_).starts_with(what); }
  void refuse(std::string_view why) {
    if (why_.empty()) why_ = why;
  }
  void skip(size_t bytes) {
    const auto part = source_.substr(at_, bytes);
    line_ += uint32_t(std::ranges::count(part, '\n'));
    at_ += part.size();
  }
  void add(token_kind what, size_t bytes) {
    tokens_.push_back({what, line_, source_.substr(at_, bytes)});
    skip(bytes);
  }
  void skip_blanks() {
    while (at_ < source_.size() && is_blank(source_[at_])) skip(1);
  }

  /// Text up to the next tag, cut as that tag says; then the tag.
  void scan_data() {
    size_t open = at_;
    while ((open = source_.find('{', open)) != source_.npos) {
      const char next = open + 1 < source_.size() ? source_[open + 1] : ' ';
      if (next == '{' || next == '%' || next == '#') break;
      ++open;
    }
    if (open == source_.npos) open = source_.size();
    add_data(open);
    if (at_ < source_.size()) scan_tag(source_[at_ + 1]);
  }

  void add_data(size_t end) {
    const auto data = source_.substr(at_, end - at_);
    const auto kept = cut(data, source_.substr(end));
    if (!kept.empty()) tokens_.push_back({token_kind::data, line_, kept});
    skip(data.size());
  }

  /// What stays of text before a tag: `-` takes all space, a block its indentation.
  std::string_view cut(std::string_view data, std::string_view tag) const {
    if (tag.size() < 3) return data;
    if (tag[2] == '-') return data.substr(0, data.find_last_not_of(spaces) + 1);
    if (tag[2] == '+' || tag[1] == '{') return data;
    const size_t start = data.rfind('\n') + 1;
    const bool whole_line = start > 0 || line_starts_;
    if (!whole_line || data.find_first_not_of(spaces, start) != data.npos) return data;
    return data.substr(0, start);
  }

  void scan_tag(char type) {
    const size_t sign = at_ + 2 < source_.size() ? at_ + 2 : at_;
    const bool has_sign = source_[sign] == '-' || source_[sign] == '+';
    const size_t size = has_sign ? 3 : 2;
    if (type == '#') return scan_comment();
    if (type == '%' && at_raw(at_ + size)) return scan_raw(size);
    add(type == '{' ? token_kind::print_begin : token_kind::block_begin, size);
    scan_code(type == '{' ? "}}" : "%}",
              type == '{' ? token_kind::print_end : token_kind::block_end);
  }

  /// Behind a tag: `-` takes all space, a block one line end.
  void close_tag(bool strips, bool trims) {
    const size_t from = at_;
    if (strips) {
      skip_blanks();
    } else if (trims && sees("\n")) {
      skip(1);
    }
    line_starts_ = at_ > from && source_[at_ - 1] == '\n';
  }

  void scan_comment() {
    const size_t end = source_.find("#}", at_ + 2);
    if (end == source_.npos) return refuse("a comment {# has no end #}");
    const char sign = source_[end - 1];
    skip(end + 2 - at_);
    close_tag(sign == '-', sign != '+');
  }

  /// `raw %}` or `endraw %}` at `from`: the offset behind the word, or 0.
  size_t word_at(size_t from, std::string_view word) const {
    while (from < source_.size() && is_blank(source_[from])) ++from;
    if (!source_.substr(from).starts_with(word)) return 0;
    from += word.size();
    while (from < source_.size() && is_blank(source_[from])) ++from;
    return from;
  }
  bool ends_tag(size_t at) const {
    const auto rest = source_.substr(at);
    return rest.starts_with("%}") || rest.starts_with("-%}") || rest.starts_with("+%}");
  }
  bool at_raw(size_t from) const {
    const size_t end = word_at(from, "raw");
    return end && ends_tag(end) && source_[end] != '+';
  }

  void skip_tag_end(bool trims) {
    const char sign = source_[at_];
    skip(sign == '%' ? 2 : 3);
    close_tag(sign == '-', trims && sign != '+');
  }

  void scan_raw(size_t open_size) {
    skip(word_at(at_ + open_size, "raw") - at_);
    skip_tag_end(false);
    for (size_t end = at_; (end = source_.find("{%", end)) != source_.npos; end += 2) {
      const char sign = end + 2 < source_.size() ? source_[end + 2] : ' ';
      const size_t behind = word_at(end + (sign == '-' || sign == '+' ? 3 : 2), "endraw");
      if (!behind || !ends_tag(behind)) continue;
      add_data(end);
      skip(behind - at_);
      return skip_tag_end(true);
    }
    refuse("{% raw %} has no {% endraw %}");
  }

  void scan_code(std::string_view end, token_kind end_kind) {
    std::string open;  // brackets
    while (why_.empty()) {
      skip_blanks();
      if (at_ == source_.size()) return refuse("a tag has no end");
      if (open.empty() && ends_code(end)) return finish_code(end, end_kind);
      scan_token(open);
    }
  }
  bool ends_code(std::string_view end) const {
    const bool sign = sees("-") || (sees("+") && end == "%}");
    return source_.substr(at_ + sign).starts_with(end);
  }
  void finish_code(std::string_view end, token_kind end_kind) {
    const char sign = source_[at_];
    const bool signed_end = sign == '-' || sign == '+';
    add(end_kind, signed_end ? 3 : 2);
    close_tag(sign == '-', end == "%}" && sign != '+');
  }

  void scan_token(std::string& open) {
    const char c = source_[at_];
    if (starts_name(c)) return scan_name();
    if (is_digit_of(c)) return scan_number();
    if (c == '"' || c == '\'') return scan_string(c);
    scan_sign(open);
  }

  void scan_name() {
    size_t end = at_;
    while (end < source_.size() && continues_name(source_[end])) ++end;
    add(token_kind::name, end - at_);
  }

  void scan_string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return refuse("a string has no closing quote");
    add(token_kind::string, end + 1 - at_);
  }

  size_t digits_from(size_t at) const {
    while (at < source_.size() && (is_digit_of(source_[at]) || source_[at] == '_')) ++at;
    return at;
  }

  void scan_number() {
    if (sees("0x") || sees("0X") || sees("0b") || sees("0B") || sees("0o") || sees("0O")) {
      size_t end = at_ + 2;
      while (end < source_.size() && continues_name(source_[end])) ++end;
      return add(token_kind::integer, end - at_);
    }
    size_t end = digits_from(at_);
    const auto digit_at = [&](size_t i) { return i < source_.size() && is_digit_of(source_[i]); };
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';  // foo.0.1
    bool real = false;
    if (!after_dot && end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      end = digits_from(end + 1);
      real = true;
    }
    if (!after_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t sign =
          end + 1 < source_.size() && (source_[end + 1] == '-' || source_[end + 1] == '+');
      if (digit_at(end + 1 + sign)) {
        end = digits_from(end + 1 + sign);
        real = true;
      }
    }
    add(real ? token_kind::real : token_kind::integer, end - at_);
  }

  void scan_sign(std::string& open) {
    constexpr std::array<std::string_view, 7> two = {"//", "**", "==", "!=", ">=", "<=", "->"};
    for (const auto sign : two) {
      if (sees(sign)) return add(token_kind::sign, 2);
    }
    const char c = source_[at_];
    if (std::string_view("+-/*%~[](){}<>=.:|,;").find(c) == std::string_view::npos) {
      return refuse("a character that no expression may hold");
    }
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return refuse("a closing bracket that nothing opened");
      open.pop_back();
    }
    if (open.size() > limits::template_syntax_depth_max) return refuse("too many nested brackets");
    add(token_kind::sign, 1);
  }

  std::string_view source_;
  std::vector<token> tokens_;
  std::string why_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starts_ = true;
};

}  // namespace

std::string with_plain_line_ends(std::string_view source) {
  std::string plain;
  plain.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      plain += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      plain += '\n';
    }
  }
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

result<std::vector<token>> tokenize(std::string_view source) { return scanner(source).scan(); }

}  // namespace lethe::jinja
