#include "runtime/template/operators.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/template/builtin.hpp"
#include "runtime/template/words.hpp"

namespace lethe::jinja {
namespace {

std::string_view sign_of(op what) {
  switch (what) {
    case op::add:
      return "+";
    case op::subtract:
      return "-";
    case op::multiply:
      return "*";
    case op::divide:
      return "/";
    case op::floor_divide:
      return "//";
    case op::modulo:
      return "%";
    default:
      return "**";
  }
}

value misfit(rendering& r, op what, const value& a, const value& b) {
  return r.fail("{} {} {} has no meaning", type_name(a), sign_of(what), type_name(b));
}

value power_of_wholes(rendering& r, int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return r.fail("0 to a negative power");
    return value(std::pow(double(base), double(exponent)));
  }
  int64_t result = 1;
  bool fits = true;
  while (exponent > 0 && fits) {
    if (exponent & 1) fits = !__builtin_mul_overflow(result, base, &result);
    exponent >>= 1;
    if (exponent > 0 && fits) fits = !__builtin_mul_overflow(base, base, &base);
  }
  return fits ? value(result) : r.fail("an integer beyond 64 bits");
}

/// Python rounds towards minus infinity, and the remainder has the divisor's sign.
value divide_wholes(rendering& r, op what, int64_t a, int64_t b) {
  if (b == 0) return r.fail("division by zero");
  if (what == op::divide) return value(double(a) / double(b));
  if (b == -1) {  // INT64_MIN / -1
    if (what == op::modulo) return value(int64_t{0});
    return a == INT64_MIN ? r.fail("an integer beyond 64 bits") : value(-a);
  }
  const int64_t rest = a % b;
  const bool below = rest != 0 && (rest < 0) != (b < 0);
  return what == op::modulo ? value(below ? rest + b : rest) : value(a / b - below);
}

value of_wholes(rendering& r, op what, int64_t a, int64_t b) {
  int64_t result = 0;
  bool over = false;
  switch (what) {
    case op::add:
      over = __builtin_add_overflow(a, b, &result);
      break;
    case op::subtract:
      over = __builtin_sub_overflow(a, b, &result);
      break;
    case op::multiply:
      over = __builtin_mul_overflow(a, b, &result);
      break;
    case op::power:
      return power_of_wholes(r, a, b);
    default:
      return divide_wholes(r, what, a, b);
  }
  return over ? r.fail("an integer beyond 64 bits") : value(result);
}

value of_reals(rendering& r, op what, double a, double b) {
  const bool divides = what == op::divide || what == op::floor_divide || what == op::modulo;
  if (divides && b == 0) return r.fail("division by zero");
  switch (what) {
    case op::add:
      return value(a + b);
    case op::subtract:
      return value(a - b);
    case op::multiply:
      return value(a * b);
    case op::divide:
      return value(a / b);
    case op::floor_divide:
      return value(std::floor(a / b));
    case op::modulo: {
      const double rest = std::fmod(a, b);
      if (rest == 0) return value(std::copysign(0.0, b));
      return value((rest < 0) != (b < 0) ? rest + b : rest);
    }
    default: {
      const double power = std::pow(a, b);
      const bool finite = std::isfinite(power) || !std::isfinite(a) || !std::isfinite(b);
      return finite ? value(power) : r.fail("a power that is no number");
    }
  }
}

value repeated(rendering& r, const value& v, int64_t times) {
  times = std::max<int64_t>(times, 0);
  const size_t size = v.is_text() ? v.text.size() : v.items->items.size();
  if (size != 0 && uint64_t(times) > limits::template_output_bytes_max / size) {
    return r.fail("{} repeated beyond {} bytes", type_name(v), limits::template_output_bytes_max);
  }
  if (v.is_text()) {
    text_sink text(r);
    for (int64_t i = 0; i < times && r.ok() && size != 0; ++i) text.append(v.text);
    return value(text.view());
  }
  sequence* s = r.make_sequence();
  for (int64_t i = 0; i < times && r.ok() && size != 0; ++i) {
    for (size_t k = 0; k < size && r.ok(); ++k) r.push(*s, v.items->items[k]);
  }
  return value(v.what, s);
}

value joined(rendering& r, const value& a, const value& b) {
  sequence* s = r.make_sequence();
  for (const sequence* part : {a.items, b.items}) {
    for (size_t i = 0; i < part->items.size() && r.ok(); ++i) r.push(*s, part->items[i]);
  }
  return value(a.what, s);
}

bool equal_rows(rendering& r, const sequence& a, const sequence& b) {
  if (a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!r.ok() || !equals(r, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_dicts(rendering& r, const dictionary& a, const dictionary& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, held] : a.all()) {
    const value* other = r.step() ? b.find(key) : nullptr;
    if (!other || !equals(r, held, *other)) return false;
  }
  return true;
}

bool row_before(rendering& r, const sequence& a, const sequence& b) {
  const size_t common = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < common && r.ok(); ++i) {
    if (!equals(r, a.items[i], b.items[i])) return before(r, a.items[i], b.items[i]);
  }
  return a.items.size() < b.items.size();
}

}  // namespace

value arithmetic(rendering& r, op what, const value& a, const value& b) {
  if (a.is_whole() && b.is_whole()) return of_wholes(r, what, a.as_whole(), b.as_whole());
  if (a.is_number() && b.is_number()) return of_reals(r, what, a.as_real(), b.as_real());
  if (what == op::modulo && a.is_text()) return format_percent(r, a.text, b);
  if (what == op::add && a.is_text() && b.is_text()) return value(r.join(a.text, b.text));
  if (what == op::add && a.is_sequence() && a.what == b.what) return joined(r, a, b);
  const auto repeats = [](const value& v) { return v.is_text() || v.is_sequence(); };
  if (what == op::multiply && repeats(a) && b.is_whole()) return repeated(r, a, b.as_whole());
  if (what == op::multiply && repeats(b) && a.is_whole()) return repeated(r, b, a.as_whole());
  return misfit(r, what, a, b);
}

value negated(rendering& r, const value& v) {
  if (v.is(kind::real)) return value(-v.number);
  if (!v.is_whole()) return r.fail("- of {}", type_name(v));
  return of_wholes(r, op::subtract, 0, v.as_whole());
}

bool equals(rendering& r, const value& a, const value& b) {
  const deeper level(r);
  if (!level || !r.step()) return false;
  if (a.is_number() && b.is_number()) {
    return a.is_whole() && b.is_whole() ? a.as_whole() == b.as_whole() : a.as_real() == b.as_real();
  }
  if (a.what != b.what) return false;
  switch (a.what) {
    case kind::text:
      return a.text.size() == b.text.size() && r.step(a.text.size()) && a.text == b.text;
    case kind::list:
    case kind::tuple:
      return a.items == b.items || equal_rows(r, *a.items, *b.items);
    case kind::dict:
      return a.entries == b.entries || equal_dicts(r, *a.entries, *b.entries);
    case kind::object:
      return a.thing == b.thing;
    default:
      return true;  // undefined, none
  }
}

bool before(rendering& r, const value& a, const value& b) {
  const deeper level(r);
  if (!level || !r.step()) return false;
  if (a.is_whole() && b.is_whole()) return a.as_whole() < b.as_whole();
  if (a.is_number() && b.is_number()) return a.as_real() < b.as_real();
  if (a.is_text() && b.is_text()) {
    return r.step(std::min(a.text.size(), b.text.size())) && a.text < b.text;
  }
  if (a.is_sequence() && a.what == b.what) return row_before(r, *a.items, *b.items);
  r.fail("{} and {} have no order", type_name(a), type_name(b));
  return false;
}

bool contains(rendering& r, const value& in, const value& v) {
  if (in.is_text()) {
    if (!v.is_text()) return r.fail("{} in a string", type_name(v)), false;
    return find_part(r, in.text, v.text, 0) != in.text.npos;
  }
  if (in.is(kind::dict)) {
    if (v.is_undefined()) return false;
    if (!dictionary::can_key(v)) return r.fail("{} as a dictionary's key", type_name(v)), false;
    return r.step() && in.entries->find(v);
  }
  if (in.is_sequence()) {
    for (size_t i = 0; i < in.items->items.size() && r.ok(); ++i) {
      if (equals(r, in.items->items[i], v)) return true;
    }
    return false;
  }
  if (!in.is_undefined()) r.fail("in {}", type_name(in));
  return false;
}

bool relates(rendering& r, relation how, const value& a, const value& b) {
  switch (how) {
    case relation::equal:
      return equals(r, a, b);
    case relation::unequal:
      return !equals(r, a, b);
    case relation::less:
      return before(r, a, b);
    case relation::greater:
      return before(r, b, a);
    case relation::in:
      return contains(r, b, a);
    case relation::not_in:
      return !contains(r, b, a);
    default:
      break;
  }
  if (a.is_number() && b.is_number()) {  // NaN is neither
    const bool less = how == relation::less_equal;
    return (less ? before(r, a, b) : before(r, b, a)) || equals(r, a, b);
  }
  return how == relation::less_equal ? !before(r, b, a) : !before(r, a, b);
}

}  // namespace lethe::jinja
