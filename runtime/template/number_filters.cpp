#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/template/builtin.hpp"
#include "runtime/template/operators.hpp"
#include "runtime/template/words.hpp"

namespace lethe::jinja {
namespace {

std::string_view plain_number(rendering& r, std::string_view text) {
  text = stripped(r, text, {}, true, true);
  const bool plus = text.starts_with('+') && !text.starts_with("+-");
  return text.substr(plus);
}

bool read_real(rendering& r, std::string_view text, double& d) {
  text = plain_number(r, text);
  const auto end = std::from_chars(text.data(), text.data() + text.size(), d);
  return !text.empty() && end.ec == std::errc() && end.ptr == text.data() + text.size();
}

/// The base that "0x", "0o" or "0b" names, or 0.
int named_base(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 0;
  const char letter = char(text[1] | 0x20);
  return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
}

/// Base 0: the one that the text names.
bool read_whole(rendering& r, std::string_view text, int base, int64_t& i) {
  text = plain_number(r, text);
  const int named = named_base(text);
  if (named && (base == 0 || base == named)) text.remove_prefix(2), base = named;
  if (base == 0 && text.size() > 1 && text[0] == '0') return false;
  if (base == 0) base = 10;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), i, base);
  return !text.empty() && end.ec == std::errc() && end.ptr == text.data() + text.size();
}

/// Towards zero; the filter's default where the number is out of range or no number.
value whole_of(double d, const value& otherwise) {
  return std::fabs(d) < 9.2e18 ? value(int64_t(d)) : otherwise;
}

value to_int(rendering& r, const arguments& in) {
  const value otherwise = in.at(0, value(int64_t{0}));
  const int64_t base = whole_argument(r, in, 1, 10, "int's base");
  if (base != 0 && (base < 2 || base > 36)) return r.fail("int: base must be 0 or from 2 to 36");
  if (in.self.is_undefined()) return r.fail("int of an undefined value");
  if (in.self.is_whole()) return value(in.self.as_whole());
  if (in.self.is(kind::real)) return whole_of(in.self.number, otherwise);
  if (!in.self.is_text()) return otherwise;
  int64_t i = 0;
  double d = 0;
  if (read_whole(r, in.self.text, int(base), i)) return value(i);
  return read_real(r, in.self.text, d) ? whole_of(d, otherwise) : otherwise;
}

value to_float(rendering& r, const arguments& in) {
  if (in.self.is_undefined()) return r.fail("float of an undefined value");
  if (in.self.is_number()) return value(in.self.as_real());
  double d = 0;
  if (in.self.is_text() && read_real(r, in.self.text, d)) return value(d);
  return in.at(0, value(0.0));
}

value absolute(rendering& r, const arguments& in) {
  if (in.self.is(kind::real)) return value(std::fabs(in.self.number));
  if (!in.self.is_whole()) return r.fail("abs of {}", type_name(in.self));
  return in.self.as_whole() < 0 ? negated(r, in.self) : value(in.self.as_whole());
}

/// Half to even, as Python's round: through the decimal digits, so that 2.675 is what it is.
double rounded(double d, int64_t digits) {
  char room[512];
  if (!std::isfinite(d) || digits > 300) return d;
  if (digits < 0) {
    const double unit = std::pow(10.0, double(-digits));
    return std::nearbyint(d / unit) * unit;
  }
  const auto end =
      std::to_chars(room, room + sizeof room, d, std::chars_format::fixed, int(digits));
  if (end.ec != std::errc()) return d;
  std::from_chars(room, end.ptr, d);
  return d;
}

value round(rendering& r, const arguments& in) {
  const int64_t digits = whole_argument(r, in, 0, 0, "round's precision");
  const auto method = text_argument(r, in, 1, "common", "round's method");
  if (!in.self.is_number()) return r.fail("round of {}", type_name(in.self));
  if (digits > 300 || digits < -300) return r.fail("round: precision must be from -300 to 300");
  const double d = in.self.as_real(), unit = std::pow(10.0, double(digits));
  if (method == "ceil") return value(std::ceil(d * unit) / unit);
  if (method == "floor") return value(std::floor(d * unit) / unit);
  if (method != "common") return r.fail("round: method must be common, ceil or floor");
  if (in.self.is_whole() && digits >= 0) return value(in.self.as_whole());
  if (in.self.is_whole()) return whole_of(rounded(d, digits), value(in.self.as_whole()));
  return value(rounded(d, digits));
}

/// The item itself, or the attribute that the argument names; "a.b" goes two steps.
value picked(rendering& r, const value& v, const arguments& in, size_t i) {
  return in.has(i) && !in.bound[i]->is(kind::none) ? deep_item(r, v, *in.bound[i]) : v;
}

value sum(rendering& r, const arguments& in) {
  value total = in.at(1, value(int64_t{0}));
  for (const value& v : elements(r, in.self)) {
    const value one = picked(r, v, in, 0);
    if (r.ok()) total = arithmetic(r, op::add, total, one);
    if (!r.ok()) break;
  }
  return total;
}

value extreme(rendering& r, const arguments& in, bool largest) {
  const bool exact = in.flag(0, false);
  value best, best_by;
  bool any = false;
  for (const value& v : elements(r, in.self)) {
    const value one = picked(r, v, in, 1);
    const value by = exact || !one.is_text() ? one : value(to_lower(r, one.text));
    const bool better = !any || (largest ? before(r, best_by, by) : before(r, by, best_by));
    if (!r.ok()) return {};
    if (better) best = v, best_by = by;
    any = true;
  }
  return best;
}
value least(rendering& r, const arguments& in) { return extreme(r, in, false); }
value most(rendering& r, const arguments& in) { return extreme(r, in, true); }

}  // namespace

builtins number_filters() {
  static constexpr builtin rows[] = {
      {"int", to_int, "default base"},
      {"float", to_float, "default"},
      {"abs", absolute, ""},
      {"round", round, "precision method"},
      {"sum", sum, "attribute start"},
      {"min", least, "case_sensitive attribute"},
      {"max", most, "case_sensitive attribute"},
  };
  return rows;
}

}  // namespace lethe::jinja
