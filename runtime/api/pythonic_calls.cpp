#include "runtime/api/pythonic_calls.hpp"

#include <algorithm>
#include <charconv>

#include "runtime/base/utf8.hpp"
#include "runtime/json/json_slice.hpp"
#include "runtime/json/json_text.hpp"
#include "runtime/json/scan_json.hpp"

namespace lethe {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads calls and writes their arguments as JSON. Recursion is bounded by json_depth_max.
class pythonic_reader {
 public:
  pythonic_reader(std::string_view text, std::pmr::memory_resource* memory)
      : scan_(text), memory_(memory) {}

  bool list(std::pmr::vector<tool_call>& into) {
    if (!took('[')) return false;
    do {
      auto& one = into.emplace_back(tool_call{std::pmr::string(memory_), std::pmr::string(memory_),
                                              std::pmr::string(memory_)});
      if (!call(one)) return false;
    } while (took(','));
    return took(']') && (scan_.skip_blanks(), scan_.done());
  }

 private:
  bool took(char c) {
    scan_.skip_blanks();
    if (scan_.done() || scan_.now() != c) return false;
    scan_.next();
    return true;
  }

  /// A name; of a function it may have dots and dashes.
  std::string_view name(std::string_view also) {
    scan_.skip_blanks();
    size_t begin = scan_.at();
    if (!is_letter(scan_.now())) return {};
    while (is_letter(scan_.now()) || is_digit(scan_.now()) ||
           (!scan_.done() && also.find(scan_.now()) != also.npos))
      scan_.next();
    return scan_.from(begin);
  }

  bool call(tool_call& c) {
    c.name = name(".-");
    if (c.name.empty() || !took('(')) return false;
    json_text out(memory_);
    out.open('{');
    bool more = !took(')');
    while (more) {
      auto argument = name("");
      if (argument.empty() || !took('=')) return false;
      out.key(argument);
      if (!value(out, 0)) return false;
      more = took(',');
      if (took(')')) break;
      if (!more) return false;
    }
    out.close('}');
    c.arguments = out.str();
    return true;
  }

  bool value(json_text& out, uint32_t depth) {
    if (depth + 2 > json_depth_max) return false;
    scan_.skip_blanks();
    char c = scan_.now();
    if (c == '\'' || c == '"') {
      std::pmr::string read(memory_);
      if (!text(read)) return false;
      out.text(read);
      return true;
    }
    if (c == '[') return list_value(out, depth);
    if (c == '{') return dict_value(out, depth);
    return is_letter(c) ? word(out) : number(out);
  }

  bool list_value(json_text& out, uint32_t depth) {
    scan_.next();
    out.open('[');
    while (!took(']')) {
      if (!value(out, depth + 1)) return false;
      if (took(',')) continue;
      if (!took(']')) return false;
      break;
    }
    out.close(']');
    return true;
  }

  bool dict_value(json_text& out, uint32_t depth) {
    scan_.next();
    out.open('{');
    while (!took('}')) {
      std::pmr::string key(memory_);
      scan_.skip_blanks();
      if ((scan_.now() != '\'' && scan_.now() != '"') || !text(key) || !took(':')) return false;
      out.key(key);
      if (!value(out, depth + 1)) return false;
      if (took(',')) continue;
      if (!took('}')) return false;
      break;
    }
    out.close('}');
    return true;
  }

  bool word(json_text& out) {
    auto w = name("");
    if (w == "True" || w == "true")
      out.boolean(true);
    else if (w == "False" || w == "false")
      out.boolean(false);
    else if (w == "None" || w == "null")
      out.null();
    else
      return false;
    return true;
  }

  /// One that JSON writes the same way.
  bool number(json_text& out) {
    size_t begin = scan_.at();
    while (is_digit(scan_.now()) ||
           (!scan_.done() && std::string_view("+-.eE").find(scan_.now()) != std::string_view::npos))
      scan_.next();
    auto digits = scan_.from(begin);
    auto checked = check_json(digits);
    if (!checked || !checked->is(json_kind::number)) return false;
    out.raw(digits);
    return true;
  }

  bool text(std::pmr::string& out) {
    char quote = scan_.now();
    for (scan_.next(); scan_.now() != quote; scan_.next()) {
      if (scan_.done() || scan_.now() == '\n') return false;
      if (scan_.now() != '\\')
        out.push_back(scan_.now());
      else if (!escape(out))
        return false;
    }
    scan_.next();
    return true;
  }

  /// Stops at the last character of the escape.
  bool escape(std::pmr::string& out) {
    scan_.next();
    if (scan_.done()) return false;
    constexpr std::string_view from = "abfnrtv\\'\"", to = "\a\b\f\n\r\t\v\\'\"";
    char c = scan_.now();
    if (size_t i = from.find(c); i != from.npos) return out.push_back(to[i]), true;
    if (c == '\n') return true;  // goes on in the next line
    if (c == 'x') return code(out, 2);
    if (c == 'u') return code(out, 4);
    if (c == 'U') return code(out, 8);
    out.push_back('\\');  // Python keeps both
    out.push_back(c);
    return true;
  }

  bool code(std::pmr::string& out, size_t digits) {
    auto hex = scan_.rest().substr(1, digits);
    uint32_t value = 0;
    auto [rest, wrong] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
    if (hex.size() < digits || wrong != std::errc() || rest != hex.data() + digits) return false;
    bool half = value >= 0xd800 && value < 0xe000;  // of a pair, which Python doesn't join
    if (value > 0x10ffff) return false;
    utf8::append(out, half ? 0xfffd : value);
    scan_.next(digits);
    return true;
  }

  json_scan scan_;
  std::pmr::memory_resource* memory_;
};

}  // namespace

bool read_pythonic(std::string_view list, std::pmr::vector<tool_call>& into) {
  return pythonic_reader(list, into.get_allocator().resource()).list(into);
}

}  // namespace lethe
