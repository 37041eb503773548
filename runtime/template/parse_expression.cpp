#include <charconv>

#include "runtime/template/bounds.hpp"
#include "runtime/template/builtin.hpp"
#include "runtime/template/parser.hpp"

namespace lethe::jinja {

const expr* parser::expression() { return choice(); }

const expr* parser::choice() {
  const nested level(*this);
  const uint32_t line = now().line;
  const expr* e = either();
  while (ok() && skip_word("if")) {
    ++branches_;
    const expr* when = either();
    const expr* otherwise = skip_word("else") ? choice() : nullptr;
    --branches_;
    e = make(op::choose, line, {when, e, otherwise});
  }
  return e;
}

const expr* parser::either() {
  const uint32_t line = now().line;
  const expr* e = both();
  while (ok() && skip_word("or")) e = make(op::either, line, {e, both()});
  return e;
}

const expr* parser::both() {
  const uint32_t line = now().line;
  const expr* e = inverted();
  while (ok() && skip_word("and")) e = make(op::both, line, {e, inverted()});
  return e;
}

const expr* parser::inverted() {
  const uint32_t line = now().line;
  if (!skip_word("not")) return comparison();
  const nested level(*this);
  return ok() ? make(op::invert, line, {inverted()}) : nullptr;
}

const expr* parser::comparison() {
  constexpr std::pair<std::string_view, relation> signs[] = {
      {"==", relation::equal},      {"!=", relation::unequal}, {"<", relation::less},
      {"<=", relation::less_equal}, {">", relation::greater},  {">=", relation::greater_equal}};
  const uint32_t line = now().line;
  std::vector<const expr*> of = {sum()};
  std::vector<relation> relations;
  const auto next = [&] {
    for (const auto& [sign, how] : signs) {
      if (skip_sign(sign)) return relations.push_back(how), true;
    }
    if (skip_word("in")) return relations.push_back(relation::in), true;
    if (!at_word("not") || later(1).what != token_kind::name || later(1).text != "in") return false;
    advance();
    advance();
    return relations.push_back(relation::not_in), true;
  };
  while (ok() && next()) of.push_back(sum());
  if (relations.empty()) return of[0];
  expr* e = make(op::compare, line);
  e->of = keep(of);
  e->relations = keep(relations);
  return e;
}

const expr* parser::sum() {
  const uint32_t line = now().line;
  const expr* e = concatenation();
  while (ok()) {
    if (skip_sign("+")) {
      e = make(op::add, line, {e, concatenation()});
    } else if (skip_sign("-")) {
      e = make(op::subtract, line, {e, concatenation()});
    } else {
      break;
    }
  }
  return e;
}

const expr* parser::concatenation() {
  const uint32_t line = now().line;
  std::vector<const expr*> of = {product()};
  while (ok() && skip_sign("~")) of.push_back(product());
  if (of.size() == 1) return of[0];
  expr* e = make(op::concat, line);
  e->of = keep(of);
  return e;
}

const expr* parser::product() {
  constexpr std::pair<std::string_view, op> signs[] = {
      {"*", op::multiply}, {"/", op::divide}, {"//", op::floor_divide}, {"%", op::modulo}};
  const expr* e = power();
  for (bool more = true; more && ok();) {
    more = false;
    for (const auto& [sign, what] : signs) {
      const uint32_t line = now().line;
      if (!skip_sign(sign)) continue;
      e = make(what, line, {e, power()});
      more = true;
      break;
    }
  }
  return e;
}

const expr* parser::power() {
  const uint32_t line = now().line;
  const expr* e = unary(true);
  while (ok() && skip_sign("**")) e = make(op::power, line, {e, unary(true)});
  return e;
}

const expr* parser::unary(bool with_filters) {
  const nested level(*this);
  const uint32_t line = now().line;
  const expr* e = nullptr;
  if (!ok()) return nullptr;
  if (skip_sign("-")) {
    e = make(op::negate, line, {unary(false)});
  } else if (skip_sign("+")) {
    e = make(op::positive, line, {unary(false)});
  } else {
    e = primary();
  }
  e = postfix(e);
  return with_filters ? filters(e) : e;
}

const expr* parser::primary() {
  switch (now().what) {
    case token_kind::name:
      return name_or_constant();
    case token_kind::string:
      return strings();
    case token_kind::integer:
    case token_kind::real:
      return number();
    default:
      break;
  }
  if (at_sign("(")) return brackets();
  if (at_sign("[")) return list();
  if (at_sign("{")) return dict();
  refuse("expected an expression, found " + found());
  return nullptr;
}

const expr* parser::name_or_constant() {
  const token word = now();
  const auto is = [&](std::string_view a, std::string_view b) {
    return word.text == a || word.text == b;
  };
  advance();
  if (is("true", "True")) return constant(value(true), word.line);
  if (is("false", "False")) return constant(value(false), word.line);
  if (is("none", "None")) return constant(none_value(), word.line);
  if (inside_) {
    inside_->uses_varargs |= word.text == "varargs";
    inside_->uses_kwargs |= word.text == "kwargs";
    inside_->uses_caller |= word.text == "caller";
  }
  expr* e = make(op::name, word.line);
  e->text = program_.keep(word.text);
  e->id = program_.intern(word.text);
  e->function = find_in(all_globals(), word.text);
  return e;
}

const expr* parser::number() {
  const token literal = now();
  advance();
  std::string digits(literal.text);
  std::erase(digits, '_');
  const char* end = digits.data() + digits.size();
  std::from_chars_result got{};
  value v;
  if (literal.what == token_kind::real) {
    v = value(0.0);
    got = std::from_chars(digits.data(), end, v.number);
  } else {
    const char type = digits.size() > 1 ? char(digits[1] | 0x20) : '0';
    const int base = type == 'x' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    v = value(int64_t{0});
    got = std::from_chars(digits.data() + (base == 10 ? 0 : 2), end, v.whole, base);
  }
  if (got.ec != std::errc() || got.ptr != end) {
    refuse_at(literal.line, "a number that is not valid or does not fit in 64 bits");
  }
  return constant(v, literal.line);
}

const expr* parser::strings() {
  const uint32_t line = now().line;
  std::string all;
  for (; ok() && now().what == token_kind::string; advance()) {
    const auto text = unescape(now());
    if (text) {
      all += *text;
    } else {
      why_ = text.why().text;
    }
  }
  return constant(value(program_.keep(all)), line);
}

const expr* parser::brackets() {
  const uint32_t line = now().line;
  advance();
  if (skip_sign(")")) return make(op::tuple, line);
  const expr* e = row(true, true);
  expect_sign(")", "brackets");
  return e;
}

const expr* parser::list() {
  expr* e = make(op::list, now().line);
  std::vector<const expr*> of;
  advance();
  while (ok() && !at_sign("]")) {
    of.push_back(expression());
    if (!skip_sign(",")) break;
  }
  expect_sign("]", "a list");
  e->of = keep(of);
  return e;
}

const expr* parser::dict() {
  expr* e = make(op::dict, now().line);
  std::vector<const expr*> of;
  advance();
  while (ok() && !at_sign("}")) {
    of.push_back(expression());
    expect_sign(":", "a dictionary");
    of.push_back(expression());
    if (!skip_sign(",")) break;
  }
  expect_sign("}", "a dictionary");
  e->of = keep(of);
  return e;
}

bool parser::at_row_end() const {
  return now().what == token_kind::print_end || now().what == token_kind::block_end ||
         at_sign(")") || at_word("in") || at_word("recursive") || at_sign("=");
}

const expr* parser::row(bool conditional, bool bracketed) {
  const nested level(*this);
  const uint32_t line = now().line;
  const auto one = [&] { return conditional ? choice() : either(); };
  if (!ok()) return nullptr;
  std::vector<const expr*> of = {one()};
  bool several = false;
  while (ok() && skip_sign(",")) {
    several = true;
    if (bracketed ? at_sign(")") : at_row_end()) break;
    of.push_back(one());
  }
  if (!several) return of[0];
  expr* e = make(op::tuple, line);
  e->of = keep(of);
  return e;
}

}  // namespace lethe::jinja
