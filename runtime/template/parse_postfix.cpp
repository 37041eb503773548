#include <charconv>

#include "runtime/template/builtin.hpp"
#include "runtime/template/parser.hpp"

namespace lethe::jinja {

const expr* parser::postfix(const expr* e) {
  while (ok()) {
    if (at_sign(".")) {
      e = after_dot(e);
    } else if (at_sign("[")) {
      e = subscript(e);
    } else if (at_sign("(")) {
      expr* made = make(op::call, now().line);
      made->of = keep(std::vector<const expr*>{e});
      call_arguments(*made);
      e = made;
    } else {
      break;
    }
  }
  return e;
}

const expr* parser::after_dot(const expr* e) {
  advance();
  const token word = now();
  if (word.what == token_kind::integer) {  // foo.0
    return make(op::item, word.line, {e, number()});
  }
  const auto name = expect_name("an attribute");
  expr* made = make(op::attribute, word.line);
  made->of = keep(std::vector<const expr*>{e});
  made->text = program_.keep(name);
  return made;
}

const expr* parser::subscript(const expr* e) {
  const uint32_t line = now().line;
  advance();
  std::vector<const expr*> parts = {e};
  bool is_slice = false;
  const expr* index = slice_or_index(is_slice, parts);
  if (at_sign(",")) refuse("a subscript of several values is not supported");
  expect_sign("]", "a subscript");
  if (!is_slice) return make(op::item, line, {e, index});
  expr* made = make(op::slice, line);
  made->of = keep(parts);
  return made;
}

/// `from:to:by`, each optional; `bounds` then holds the three, null where absent.
const expr* parser::slice_or_index(bool& is_slice, std::vector<const expr*>& bounds) {
  const auto part = [&]() -> const expr* {
    return at_sign(":") || at_sign("]") ? nullptr : expression();
  };
  if (at_sign("]")) refuse("a subscript is empty");
  const expr* first = part();
  if (!at_sign(":")) return first;
  is_slice = true;
  bounds.push_back(first);
  for (int i = 0; i < 2; ++i) bounds.push_back(skip_sign(":") ? part() : nullptr);
  return nullptr;
}

const expr* parser::filters(const expr* e) {
  while (ok()) {
    if (at_sign("|")) {
      advance();
      e = filter(e);
    } else if (at_word("is")) {
      advance();
      e = test(e);
    } else if (at_sign("(")) {  // also behind a filter, as Jinja has it
      e = postfix(e);
    } else {
      break;
    }
  }
  return e;
}

const expr* parser::filter(const expr* e) {
  const uint32_t line = now().line;
  const auto name = expect_name("a filter");
  expr* made = make(op::filter, line);
  made->text = program_.keep(name);
  made->of = keep(std::vector<const expr*>{e});
  made->function = find_filter(name);
  // Jinja, too, only minds a missing filter in a branch when it gets there.
  if (!made->function && branches_ == 0 && ok()) {
    refuse_at(line, fmt::format("unknown filter \"{}\"; supported: {}", name, filter_names()));
  }
  if (at_sign("(")) call_arguments(*made);
  return made;
}

bool parser::at_test_argument() const {
  switch (now().what) {
    case token_kind::string:
    case token_kind::integer:
    case token_kind::real:
      return true;
    case token_kind::name:
      break;
    default:
      return at_sign("[") || at_sign("{");
  }
  for (const auto word : {"else", "or", "and", "if", "is", "in", "not", "recursive"}) {
    if (at_word(word)) return false;
  }
  return true;
}

const expr* parser::test(const expr* e) {
  const uint32_t line = now().line;
  const bool inverts = skip_word("not");
  const auto name = expect_name("a test");
  expr* made = make(op::test, line);
  made->text = program_.keep(name);
  made->of = keep(std::vector<const expr*>{e});
  made->function = find_test(name);
  if (!made->function && branches_ == 0 && ok()) {
    refuse_at(line, fmt::format("unknown test \"{}\"; supported: {}", name, test_names()));
  }
  if (at_sign("(")) {
    call_arguments(*made);
  } else if (at_test_argument()) {
    made->of = keep(std::vector<const expr*>{e, postfix(primary())});
  }
  return inverts ? make(op::invert, line, {made}) : made;
}

/// `(a, *b, c=d, **e)`: what is by position goes behind what `call.of` holds already.
void parser::call_arguments(expr& call) {
  std::vector<const expr*> of(call.of.begin(), call.of.end());
  std::vector<named_expr> named;
  advance();
  while (ok() && !at_sign(")")) {
    const uint32_t line = now().line;
    if (skip_sign("**")) {
      of.push_back(make(op::spread_named, line, {expression()}));
    } else if (skip_sign("*")) {
      of.push_back(make(op::spread, line, {expression()}));
    } else if (now().what == token_kind::name && later(1).what == token_kind::sign &&
               later(1).text == "=") {
      const auto name = program_.keep(now().text);
      advance();
      advance();
      named.push_back({name, expression()});
    } else {
      if (!named.empty()) refuse("an argument by position stands behind one by name");
      of.push_back(expression());
    }
    if (!skip_sign(",")) break;
  }
  expect_sign(")", "a call");
  call.of = keep(of);
  call.named = keep(named);
}

}  // namespace lethe::jinja
