#include <cmath>

#include "runtime/template/builtin.hpp"
#include "runtime/template/operators.hpp"

namespace lethe::jinja {
namespace {

value defined(rendering&, const arguments& in) { return value(!in.self.is_undefined()); }
value undefined(rendering&, const arguments& in) { return value(in.self.is_undefined()); }
value is_none(rendering&, const arguments& in) { return value(in.self.is(kind::none)); }
value is_string(rendering&, const arguments& in) { return value(in.self.is_text()); }
value is_number(rendering&, const arguments& in) { return value(in.self.is_number()); }
value is_integer(rendering&, const arguments& in) { return value(in.self.is(kind::integer)); }
value is_float(rendering&, const arguments& in) { return value(in.self.is(kind::real)); }
value is_boolean(rendering&, const arguments& in) { return value(in.self.is(kind::boolean)); }
value is_mapping(rendering&, const arguments& in) { return value(in.self.is(kind::dict)); }
value is_sequence(rendering&, const arguments& in) {
  const value& v = in.self;
  const bool lazy = v.is_sequence() && v.items->lazy;
  return value(!lazy && (v.is_sequence() || v.is_text() || v.is(kind::dict) || v.is_undefined()));
}
value is_iterable(rendering&, const arguments& in) {
  const value& v = in.self;
  return value(v.is_sequence() || v.is_text() || v.is(kind::dict) || v.is_undefined());
}
value is_callable(rendering&, const arguments& in) {
  if (!in.self.is(kind::object)) return value(in.self.is_undefined());
  return value(in.self.thing->what != object::form::space);
}
value is_true(rendering&, const arguments& in) {
  return value(in.self.is(kind::boolean) && in.self.flag);
}
value is_false(rendering&, const arguments& in) {
  return value(in.self.is(kind::boolean) && !in.self.flag);
}

value divides(rendering& r, const value& v, const value& by, int64_t rest) {
  const value left = arithmetic(r, op::modulo, v, by);
  return value(r.ok() && equals(r, left, value(rest)));
}
value odd(rendering& r, const arguments& in) { return divides(r, in.self, value(int64_t{2}), 1); }
value even(rendering& r, const arguments& in) { return divides(r, in.self, value(int64_t{2}), 0); }
value divisibleby(rendering& r, const arguments& in) {
  return divides(r, in.self, *in.bound[0], 0);
}

template <relation How>
value related(rendering& r, const arguments& in) {
  return value(relates(r, How, in.self, *in.bound[0]));
}

/// Same case as Python's isupper, islower.
value check_case(rendering& r, const arguments& in, std::string_view method) {
  const value text(as_text(r, in.self));
  return invoke(r, *find_method(text, method), {.self = text});
}
value is_upper_case(rendering& r, const arguments& in) { return check_case(r, in, "isupper"); }
value is_lower_case(rendering& r, const arguments& in) { return check_case(r, in, "islower"); }

value sameas(rendering& r, const arguments& in) {
  const value& a = in.self;
  const value& b = *in.bound[0];
  if (a.what != b.what) return value(false);
  if (a.is_sequence()) return value(a.items == b.items);
  if (a.is(kind::dict)) return value(a.entries == b.entries);
  return value(equals(r, a, b));
}

value is_filter(rendering&, const arguments& in) {
  return value(in.self.is_text() && find_filter(in.self.text));
}
value is_test(rendering&, const arguments& in) {
  return value(in.self.is_text() && find_test(in.self.text));
}
value is_escaped(rendering&, const arguments&) { return value(false); }

}  // namespace

builtins all_tests() {
  static constexpr builtin rows[] = {
      {"defined", defined, ""},
      {"undefined", undefined, ""},
      {"none", is_none, ""},
      {"string", is_string, ""},
      {"number", is_number, ""},
      {"integer", is_integer, ""},
      {"float", is_float, ""},
      {"boolean", is_boolean, ""},
      {"mapping", is_mapping, ""},
      {"sequence", is_sequence, ""},
      {"iterable", is_iterable, ""},
      {"callable", is_callable, ""},
      {"true", is_true, ""},
      {"false", is_false, ""},
      {"odd", odd, ""},
      {"even", even, ""},
      {"divisibleby", divisibleby, "num", 1},
      {"eq", related<relation::equal>, "other", 1},
      {"equalto", related<relation::equal>, "other", 1},
      {"==", related<relation::equal>, "other", 1},
      {"ne", related<relation::unequal>, "other", 1},
      {"!=", related<relation::unequal>, "other", 1},
      {"lt", related<relation::less>, "other", 1},
      {"lessthan", related<relation::less>, "other", 1},
      {"<", related<relation::less>, "other", 1},
      {"le", related<relation::less_equal>, "other", 1},
      {"<=", related<relation::less_equal>, "other", 1},
      {"gt", related<relation::greater>, "other", 1},
      {"greaterthan", related<relation::greater>, "other", 1},
      {">", related<relation::greater>, "other", 1},
      {"ge", related<relation::greater_equal>, "other", 1},
      {">=", related<relation::greater_equal>, "other", 1},
      {"in", related<relation::in>, "seq", 1},
      {"upper", is_upper_case, ""},
      {"lower", is_lower_case, ""},
      {"sameas", sameas, "other", 1},
      {"filter", is_filter, ""},
      {"test", is_test, ""},
      {"escaped", is_escaped, ""},
  };
  return rows;
}

}  // namespace lethe::jinja
