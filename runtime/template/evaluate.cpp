#include "runtime/template/evaluate.hpp"

#include "runtime/template/operators.hpp"

namespace lethe::jinja {
namespace {

value look_up(rendering& r, const expr& e, scope& in) {
  for (scope* s = &in; s; s = s->outer) {
    if (const value* v = s->find(e.id)) return *v;
  }
  if (e.function) return value(r.make<function_object>(e.function));
  return {};
}

/// An operand that must be there.
[[gnu::noinline]] value operand(rendering& r, const expr* e, scope& in) {
  const value v = evaluate(r, *e, in);
  if (v.is_undefined() && r.ok()) r.fail("{} is undefined", describe(e));
  return v;
}

[[gnu::noinline]] value make_row(rendering& r, const expr& e, scope& in) {
  sequence* s = r.make_sequence();
  for (const expr* part : e.of) {
    if (!r.ok()) break;
    r.push(*s, evaluate(r, *part, in));
  }
  return value(e.what == op::list ? kind::list : kind::tuple, s);
}

[[gnu::noinline]] value make_dict(rendering& r, const expr& e, scope& in) {
  dictionary* d = r.make_dictionary();
  for (size_t i = 0; i + 1 < e.of.size() && r.ok(); i += 2) {
    const value key = evaluate(r, *e.of[i], in);
    r.put(*d, key, evaluate(r, *e.of[i + 1], in));
  }
  return value(d);
}

[[gnu::noinline]] value compare(rendering& r, const expr& e, scope& in) {
  value left = evaluate(r, *e.of[0], in);
  for (size_t i = 0; i < e.relations.size() && r.ok(); ++i) {
    const value right = evaluate(r, *e.of[i + 1], in);
    const relation how = e.relations[i];
    const bool ordered = how >= relation::less && how <= relation::greater_equal;
    if (ordered && left.is_undefined()) return r.fail("{} is undefined", describe(e.of[i]));
    if (ordered && right.is_undefined()) return r.fail("{} is undefined", describe(e.of[i + 1]));
    if (!relates(r, how, left, right)) return value(false);
    left = right;
  }
  return value(true);
}

[[gnu::noinline]] value concat(rendering& r, const expr& e, scope& in) {
  std::string_view all;
  for (const expr* part : e.of) {
    const value v = evaluate(r, *part, in);
    if (!r.ok()) return {};
    all = r.join(all, as_text(r, v));
  }
  return value(all);
}

[[gnu::noinline]] value choose(rendering& r, const expr& e, scope& in) {
  if (truth(evaluate(r, *e.of[0], in))) return evaluate(r, *e.of[1], in);
  return e.of[2] && r.ok() ? evaluate(r, *e.of[2], in) : value();
}

[[gnu::noinline]] value cut(rendering& r, const expr& e, scope& in) {
  const auto bound = [&](size_t i) { return e.of[i] ? evaluate(r, *e.of[i], in) : none_value(); };
  const value v = operand(r, e.of[0], in);
  const value from = bound(1), to = bound(2), by = bound(3);
  return r.ok() ? slice(r, v, from, to, by) : value();
}

bool takes_two(const expr& e) { return e.what >= op::add && e.what <= op::power; }

value combined(rendering& r, const expr& e, const value& a, scope& in) {
  // A text before % may have an undefined behind it; it prints as nothing.
  const value b =
      e.what == op::modulo && a.is_text() ? evaluate(r, *e.of[1], in) : operand(r, e.of[1], in);
  r.at(e.line);
  return r.ok() ? arithmetic(r, e.what, a, b) : value();
}

/// a + b + c + ... leans to the left; walked in a loop, so that a long row needs no deep stack.
[[gnu::noinline]] value of_two(rendering& r, const expr& e, scope& in) {
  std::pmr::vector<const expr*> row(r.memory());
  const expr* left = &e;
  for (; takes_two(*left); left = left->of[0]) {
    if (!r.step() || !r.take(2 * sizeof left)) return {};
    row.push_back(left);
  }
  value v = evaluate(r, *left, in);
  for (size_t i = row.size(); i-- > 0 && r.ok();) {
    if (v.is_undefined()) return r.fail("{} is undefined", describe(row[i]->of[0]));
    v = combined(r, *row[i], v, in);
  }
  return v;
}

[[gnu::noinline]] value of_one(rendering& r, const expr& e, scope& in) {
  if (e.what == op::invert) return value(!truth(evaluate(r, *e.of[0], in)));
  const value v = operand(r, e.of[0], in);
  if (!r.ok()) return {};
  if (e.what == op::negate) return negated(r, v);
  return v.is_number() ? v : r.fail("+ of {}", type_name(v));
}

[[gnu::noinline]] value member(rendering& r, const expr& e, scope& in) {
  const value v = operand(r, e.of[0], in);
  if (!r.ok()) return {};
  if (e.what == op::attribute) return attribute(r, v, e.text);
  const value key = evaluate(r, *e.of[1], in);
  return r.ok() ? item(r, v, key) : value();
}

[[gnu::noinline]] value logic(rendering& r, const expr& e, scope& in) {
  const value left = evaluate(r, *e.of[0], in);
  if (truth(left) == (e.what == op::either)) return left;
  return r.ok() ? evaluate(r, *e.of[1], in) : value();
}

}  // namespace

value evaluate(rendering& r, const expr& e, scope& in) {
  const deeper level(r);
  if (!level || !r.step()) return {};
  r.at(e.line);
  switch (e.what) {
    case op::constant:
      return e.constant;
    case op::captured:
      return r.captured;
    case op::name:
      return look_up(r, e, in);
    case op::list:
    case op::tuple:
      return make_row(r, e, in);
    case op::dict:
      return make_dict(r, e, in);
    case op::attribute:
    case op::item:
      return member(r, e, in);
    case op::slice:
      return cut(r, e, in);
    case op::call:
    case op::filter:
    case op::test:
      return evaluate_call(r, e, in);
    case op::invert:
    case op::negate:
    case op::positive:
      return of_one(r, e, in);
    case op::concat:
      return concat(r, e, in);
    case op::compare:
      return compare(r, e, in);
    case op::both:
    case op::either:
      return logic(r, e, in);
    case op::choose:
      return choose(r, e, in);
    case op::spread:
    case op::spread_named:
      return r.fail("* and ** stand only before an argument");
    default:
      return of_two(r, e, in);
  }
}

std::string describe(const expr* e) {
  std::string path;
  for (; e; e = e->of.empty() ? nullptr : e->of[0]) {
    if (e->what == op::name) return fmt::format("\"{}{}\"", e->text, path);
    if (e->what == op::attribute) {
      path = fmt::format(".{}{}", e->text, path);
    } else if (e->what == op::item || e->what == op::slice) {
      path = fmt::format("[...]{}", path);
    } else if (e->what == op::call) {
      path = fmt::format("(){}", path);
    } else {
      break;
    }
  }
  return e && e->what == op::filter ? fmt::format("the result of filter {}", e->text) : "a value";
}

}  // namespace lethe::jinja
