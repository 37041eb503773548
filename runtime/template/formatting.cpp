#include "runtime/template/formatting.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/template/operators.hpp"
#include "runtime/template/print.hpp"
#include "runtime/template/unicode.hpp"
#include "runtime/template/words.hpp"

namespace lethe::jinja {
namespace {

constexpr int64_t precision_max = 60;

/// A number without its sign. On the stack: it may be content.
struct digits {
  bool negative = false;
  std::string_view prefix;
  size_t size = 0;
  char room[640];  // 309 digits of the largest float, commas, a point, precision_max more

  std::string_view text() const { return {room, size}; }
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    size = fmt::format_to_n(room, sizeof room, format, std::forward<Args>(args)...).size;
  }
};

void print_whole(const field& f, int64_t v, digits& d) {
  const uint64_t size = v < 0 ? 0 - uint64_t(v) : uint64_t(v);
  d.negative = v < 0;
  switch (f.type) {
    case 'x':
      d.print("{:x}", size), d.prefix = "0x";
      break;
    case 'X':
      d.print("{:X}", size), d.prefix = "0X";
      break;
    case 'o':
      d.print("{:o}", size), d.prefix = "0o";
      break;
    case 'b':
      d.print("{:b}", size), d.prefix = "0b";
      break;
    default:
      d.print("{}", size);
      break;
  }
  if (!f.alternate) d.prefix = {};
}

void print_real(const field& f, double v, digits& d) {
  const double size = std::fabs(v);
  const int precision = f.precision < 0 ? 6 : int(f.precision);
  char room[32];
  d.negative = std::signbit(v);
  switch (f.type) {
    case 'f':
    case 'F':
      d.print("{:.{}f}", size, precision);
      break;
    case 'e':
      d.print("{:.{}e}", size, precision);
      break;
    case 'E':
      d.print("{:.{}E}", size, precision);
      break;
    case 'G':
      d.print("{:.{}G}", size, precision);
      break;
    case '%':
      d.print("{:.{}f}%", 100 * size, precision);
      break;
    case 'g':
      d.print("{:.{}g}", size, precision);
      break;
    default:
      f.precision < 0 ? d.print("{}", real_text(size, room)) : d.print("{:.{}g}", size, precision);
  }
}

void group_by_three(digits& d) {
  size_t at = std::min(d.text().find_first_not_of("0123456789"), d.size);
  for (; at > 3 && d.size < sizeof d.room; ++d.size) {
    at -= 3;
    std::copy_backward(d.room + at, d.room + d.size, d.room + d.size + 1);
    d.room[at] = ',';
  }
}

bool sets_real(char type) {
  return std::string_view("fFeEgG%").find(type) != std::string_view::npos;
}

void append_number(rendering& r, text_sink& to, const field& f, const value& v) {
  const bool real = v.is(kind::real) || (f.type && sets_real(f.type));
  if (real && f.type && !sets_real(f.type)) {
    r.fail("format '{}' of a float", f.type);
    return;
  }
  digits d;
  real ? print_real(f, v.as_real(), d) : print_whole(f, v.as_whole(), d);
  if (f.comma) group_by_three(d);
  const std::string_view sign = d.negative ? "-" : f.sign == '+' ? "+" : f.sign == ' ' ? " " : "";
  const auto room = size_t(std::max<int64_t>(f.width, 0));
  const size_t size = sign.size() + d.prefix.size() + d.size;
  const size_t missing = room > size ? room - size : 0;
  const char align = f.align ? f.align : '>';
  const size_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  const auto fill = [&](size_t count) {
    for (size_t i = 0; i < count && r.ok(); ++i) to.append(f.fill);
  };
  fill(left);
  to.append(sign);
  to.append(d.prefix);
  if (align == '=') fill(missing);
  to.append(d.text());
  if (align != '=') fill(missing - left);
}

void append_words(rendering& r, text_sink& to, const field& f, std::string_view text) {
  r.step(text.size());
  if (f.precision >= 0) text = text.substr(0, point_offset(text, size_t(f.precision)));
  const auto room = size_t(std::max<int64_t>(f.width, 0));
  const size_t size = point_count(text), missing = room > size ? room - size : 0;
  const size_t left = f.align == '>' ? missing : f.align == '^' ? missing / 2 : 0;
  for (size_t i = 0; i < left && r.ok(); ++i) to.append(f.fill);
  to.append(text);
  for (size_t i = left; i < missing && r.ok(); ++i) to.append(f.fill);
}

/// Digits at `at`, which moves behind them; -1 where there are none.
int64_t read_count(std::string_view text, size_t& at) {
  int64_t count = -1;
  const char* begin = text.data() + at;
  const auto end = std::from_chars(begin, text.data() + text.size(), count);
  if (end.ec == std::errc::invalid_argument || (begin != end.ptr && *begin == '-')) return -1;
  at += size_t(end.ptr - begin);
  return end.ec == std::errc() ? count : INT64_MAX;
}

bool fits(rendering& r, const field& f, bool number) {
  if (f.width > limits::template_width_max) {
    return r.fail("a width above {}", limits::template_width_max), false;
  }
  if (number && f.precision > precision_max) {
    return r.fail("a precision above {}", precision_max), false;
  }
  return true;
}

/// [[fill]align][sign][#][0][width][,][.precision][type]
field read_field(std::string_view spec) {
  constexpr std::string_view aligns = "<>^=";
  field f;
  size_t at = 0;
  const auto take = [&](std::string_view of) -> char {
    const bool is = at < spec.size() && of.find(spec[at]) != of.npos;
    return is ? spec[at++] : char(0);
  };
  size_t behind_fill = 0;
  if (!spec.empty()) next_point(spec, behind_fill);
  if (behind_fill < spec.size() && aligns.find(spec[behind_fill]) != aligns.npos) {
    f.fill = spec.substr(0, behind_fill);
    at = behind_fill;
  }
  f.align = take(aligns);
  if (const char sign = take("+- ")) f.sign = sign;
  f.alternate = take("#");
  if (take("0") && !f.align) f.align = '=', f.fill = "0";
  f.width = std::max<int64_t>(read_count(spec, at), 0);
  f.comma = take(",");
  if (take(".")) f.precision = read_count(spec, at);
  f.type = take("sdfFeEgGxXob%");
  if (at != spec.size()) f.type = '?';
  return f;
}

/// str.format's fields, one after the other.
class brace_format {
 public:
  brace_format(rendering& r, std::string_view format, const arguments& in)
      : r_(r), format_(format), in_(in), out_(r) {}

  value run() {
    while (at_ < format_.size() && r_.ok()) {
      const char c = format_[at_];
      const bool doubled = at_ + 1 < format_.size() && format_[at_ + 1] == c;
      if ((c == '{' || c == '}') && doubled) {
        out_.append(c);
        at_ += 2;
      } else if (c == '{') {
        replace();
      } else if (c == '}') {
        r_.fail("format: a single }}");
      } else {
        const size_t end = std::min(format_.find_first_of("{}", at_), format_.size());
        out_.append(format_.substr(at_, end - at_));
        at_ = end;
      }
    }
    return value(out_.view());
  }

 private:
  void replace() {
    const size_t end = format_.find('}', at_);
    if (end == format_.npos) return void(r_.fail("format: a field has no end"));
    auto body = format_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    const size_t colon = std::min(body.find(':'), body.size());
    auto name = body.substr(0, colon);
    const field f = read_field(body.substr(std::min(colon + 1, body.size())));
    const bool quoted = name.ends_with("!r");
    if (quoted || name.ends_with("!s")) name.remove_suffix(2);
    const value* v = find(name);
    if (!v || f.type == '?') return void(r_.fail("format: no such argument or field format"));
    if (!quoted) return append_field(r_, out_, f, *v);
    text_sink text(r_);
    append_repr(r_, text, *v);
    append_field(r_, out_, f, value(text.view()));
  }

  const value* find(std::string_view name) {
    size_t index = next_;
    if (name.empty()) {
      ++next_;
    } else if (name.find_first_not_of("0123456789") == name.npos) {
      if (std::from_chars(name.data(), name.data() + name.size(), index).ec != std::errc())
        return {};
    } else {
      const auto at = std::ranges::find(in_.named, name, &named_value::name);
      return at == in_.named.end() ? nullptr : &at->is;
    }
    return index < in_.rest.size() ? &in_.rest[index] : nullptr;
  }

  rendering& r_;
  std::string_view format_;
  const arguments& in_;
  text_sink out_;
  size_t at_ = 0, next_ = 0;
};

/// `%` with a tuple, a dictionary, or one value.
class percent_format {
 public:
  percent_format(rendering& r, std::string_view format, const value& with)
      : r_(r), format_(format), with_(with), out_(r) {}

  value run() {
    while (at_ < format_.size() && r_.ok()) {
      const size_t end = std::min(format_.find('%', at_), format_.size());
      out_.append(format_.substr(at_, end - at_));
      at_ = end + 1;
      if (end < format_.size()) replace();
    }
    const bool all = with_.is(kind::tuple) ? used_ == with_.items->items.size()
                                           : used_ == 1 || with_.is(kind::dict) ||
                                                 with_.is(kind::list) || with_.is_undefined();
    if (!all) r_.fail("% of a string: not all values were used");
    return value(out_.view());
  }

 private:
  char now() const { return at_ < format_.size() ? format_[at_] : char(0); }

  void replace() {
    const value* named = now() == '(' ? member() : nullptr;
    field f;
    bool zero = false, left = false;
    for (; now() && std::string_view("-+ #0").find(now()) != std::string_view::npos; ++at_) {
      zero |= now() == '0';
      left |= now() == '-';
      if (now() == '+' || (now() == ' ' && f.sign == '-')) f.sign = now();
      f.alternate |= now() == '#';
    }
    f.width = count();
    if (now() == '.') ++at_, f.precision = std::max<int64_t>(count(), 0);
    const char type = now();
    ++at_;
    f.align = left ? '<' : zero ? '=' : '>';
    if (zero && !left) f.fill = "0";
    if (r_.ok()) convert(f, type, named);
  }

  void convert(field& f, char type, const value* named) {
    if (type == '%') return out_.append('%');
    const value* v = named ? named : next();
    if (!v) return void(r_.fail("% of a string: too few values"));
    if (type == 's' || type == 'r') return convert_text(f, type, *v);
    if (type == 'c') return convert_character(f, *v);
    if (!type || std::string_view("diufFeEgGxXo").find(type) == std::string_view::npos) {
      return void(r_.fail("% of a string: unknown conversion"));
    }
    if (!v->is_number()) return void(r_.fail("%{} of {}", type, type_name(*v)));
    const bool whole = std::string_view("diu").find(type) != std::string_view::npos;
    f.type = whole ? 'd' : type;
    if (whole && v->is(kind::real)) {
      if (!(std::fabs(v->number) < 9e18)) return void(r_.fail("an integer beyond 64 bits"));
      return append_field(r_, out_, f, value(int64_t(v->number)));
    }
    append_field(r_, out_, f, *v);
  }

  void convert_text(field& f, char type, const value& v) {
    if (f.align == '=') f.align = '>', f.fill = " ";
    text_sink text(r_);
    type == 's' ? append_text(r_, text, v) : append_repr(r_, text, v);
    append_field(r_, out_, f, value(text.view()));
  }

  void convert_character(field& f, const value& v) {
    const bool point = v.is_whole() && v.as_whole() >= 0 && v.as_whole() < 0x110000 &&
                       (v.as_whole() < 0xD800 || v.as_whole() >= 0xE000);
    if (point) return convert_text(f, 's', value(r_.keep(encode(char32_t(v.as_whole())))));
    if (v.is_text() && point_count(v.text) == 1) return convert_text(f, 's', v);
    r_.fail("%c needs one character");
  }

  const value* next() {
    if (with_.is(kind::tuple)) {
      return used_ < with_.items->items.size() ? &with_.items->items[used_++] : nullptr;
    }
    return used_++ == 0 ? &with_ : nullptr;
  }

  const value* member() {
    const size_t end = format_.find(')', at_);
    const value* v = nullptr;
    if (end != format_.npos && with_.is(kind::dict)) {
      v = with_.entries->find(format_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
    }
    if (!v) r_.fail("% of a string: no such named value");
    return v;
  }

  int64_t count() {
    if (now() != '*') return now() == '-' ? 0 : std::max<int64_t>(read_count(format_, at_), 0);
    ++at_;
    const value* v = next();
    if (v && v->is_whole()) return v->as_whole();
    r_.fail("% of a string: * needs an integer");
    return 0;
  }

  rendering& r_;
  std::string_view format_;
  const value& with_;
  text_sink out_;
  size_t at_ = 0, used_ = 0;
};

}  // namespace

void append_field(rendering& r, text_sink& to, const field& f, const value& v) {
  const bool number = v.is_number() && f.type != 's' && !(v.is(kind::boolean) && !f.type);
  if (!fits(r, f, number)) return;
  if (number) return append_number(r, to, f, v);
  if (f.type && f.type != 's') return void(r.fail("format '{}' of {}", f.type, type_name(v)));
  append_words(r, to, f, as_text(r, v));
}

value format_braces(rendering& r, std::string_view format, const arguments& in) {
  return brace_format(r, format, in).run();
}

value format_percent(rendering& r, std::string_view format, const value& with) {
  return percent_format(r, format, with).run();
}

}  // namespace lethe::jinja
