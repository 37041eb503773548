#include <algorithm>
#include <utility>

#include "runtime/template/builtin.hpp"
#include "runtime/template/parser.hpp"

namespace lethe::jinja {

bool parser::at_end_of(std::initializer_list<std::string_view> ends) const {
  return now().what == token_kind::block_begin && later(1).what == token_kind::name &&
         std::ranges::find(ends, later(1).text) != ends.end();
}

/// Up to one of `ends`, whose tag is then opened and its word the current token.
block parser::statements(std::initializer_list<std::string_view> ends) {
  const nested level(*this);
  const uint32_t line = now().line;
  std::vector<const statement*> all;
  while (ok() && now().what != token_kind::end && !at_end_of(ends)) {
    if (const statement* s = one_statement()) all.push_back(s);
  }
  if (ok() && ends.size() != 0) {
    if (now().what == token_kind::end) {
      refuse_at(line, fmt::format("a block is not closed; expected {{% {} %}}", *(ends.end() - 1)));
    }
    advance();
  }
  return keep(all);
}

void parser::end_tag(std::string_view in) {
  if (now().what != token_kind::block_end) {
    refuse(fmt::format("expected the end of {}, found {}", in, found()));
  }
  advance();
}

const statement* parser::one_statement() {
  const token t = now();
  advance();
  if (t.what == token_kind::print_begin) return print();
  if (t.what == token_kind::block_begin) return tag_statement();
  statement* s = make(act::text, t.line);
  s->text = program_.keep(t.text);
  return s;
}

const statement* parser::print() {
  statement* s = make(act::print, now().line);
  if (now().what == token_kind::print_end) refuse("an expression is missing between {{ and }}");
  s->given = row(true);
  if (now().what != token_kind::print_end) refuse("expected \"}}\", found " + found());
  advance();
  return s;
}

const statement* parser::tag_statement() {
  using rule = const statement* (parser::*)(uint32_t);
  constexpr std::pair<std::string_view, rule> rules[] = {
      {"if", &parser::branch},           {"for", &parser::loop},
      {"set", &parser::assignment},      {"macro", &parser::macro},
      {"call", &parser::call_block},     {"filter", &parser::filter_block},
      {"with", &parser::with},           {"generation", &parser::plain_block},
      {"do", &parser::plain_block},      {"break", &parser::plain_block},
      {"continue", &parser::plain_block}};
  const uint32_t line = now().line;
  for (const auto& [word, parse] : rules) {
    if (at_word(word)) return (this->*parse)(line);
  }
  for (const auto word : {"include", "import", "from", "extends", "block"}) {
    if (at_word(word)) {
      refuse(fmt::format("{{% {} %}} is not supported: a chat template is one text", word));
    }
  }
  refuse("no such statement, or a block ends that was not opened: " + found());
  return nullptr;
}

/// generation, do, break, continue.
const statement* parser::plain_block(uint32_t line) {
  const auto word = now().text;
  advance();
  if (word == "generation") {
    statement* s = make(act::with, line);
    end_tag("generation");
    s->body = statements({"endgeneration"});
    advance();
    end_tag("endgeneration");
    return s;
  }
  statement* s = make(word == "do"      ? act::evaluate
                      : word == "break" ? act::leave
                                        : act::next,
                      line);
  if (word == "do") {
    s->given = row(true);
  } else if (loops_ == 0) {
    refuse_at(line, fmt::format("{{% {} %}} stands outside of a loop", word));
  }
  end_tag(word);
  return s;
}

const statement* parser::branch(uint32_t line) {
  statement* s = make(act::branch, line);
  std::vector<arm> arms;
  ++branches_;
  for (bool more = true; more && ok();) {  // at if, elif or else
    const bool otherwise = at_word("else");
    advance();
    arm a;
    if (!otherwise) a.when = row(false);
    end_tag("if");
    a.then = otherwise ? statements({"endif"}) : statements({"elif", "else", "endif"});
    arms.push_back(a);
    more = !at_word("endif");
  }
  --branches_;
  expect_word("endif", "an if");
  end_tag("endif");
  s->arms = keep(arms);
  return s;
}

block parser::loop_body(std::initializer_list<std::string_view> ends) {
  ++loops_;
  const block body = statements(ends);
  --loops_;
  return body;
}

const statement* parser::loop(uint32_t line) {
  statement* s = make(act::loop, line);
  advance();
  s->to = assign_target(false);
  expect_word("in", "a for");
  s->given = row(false);
  if (skip_word("if")) s->only = expression();
  s->recursive = skip_word("recursive");
  end_tag("for");
  s->body = loop_body({"else", "endfor"});
  if (skip_word("else")) {
    end_tag("else");
    s->otherwise = statements({"endfor"});
  }
  expect_word("endfor", "a for");
  end_tag("endfor");
  return s;
}

target parser::one_target(bool with_attribute) {
  if (skip_sign("(")) {
    const target t = assign_target(false);
    expect_sign(")", "an assignment");
    return t;
  }
  const auto name = expect_name("a variable");
  for (const auto word : {"true", "false", "none", "True", "False", "None"}) {
    if (name == word) refuse("a constant cannot be assigned to");
  }
  target t{.id = program_.intern(name), .text = program_.keep(name)};
  if (with_attribute && skip_sign(".")) {
    t.what = target::form::attribute;
    t.attribute = program_.keep(expect_name("an attribute"));
  }
  return t;
}

target parser::assign_target(bool with_attribute) {
  const nested level(*this);
  if (!ok()) return {};
  std::vector<target> several = {one_target(with_attribute)};
  bool is_row = false;
  while (ok() && skip_sign(",")) {
    is_row = true;
    if (at_row_end()) break;
    several.push_back(one_target(with_attribute));
  }
  if (!is_row) return several[0];
  return {.what = target::form::several, .of = keep(several)};
}

const statement* parser::assignment(uint32_t line) {
  advance();
  const target to = assign_target(true);
  if (skip_sign("=")) {
    statement* s = make(act::assign, line);
    s->to = to;
    s->given = row(true);
    end_tag("set");
    return s;
  }
  statement* s = make(act::assign_block, line);
  s->to = to;
  s->given = filters(make(op::captured, line));
  end_tag("set");
  s->body = statements({"endset"});
  advance();
  end_tag("endset");
  return s;
}

void parser::parameters(std::vector<parameter>& to) {
  expect_sign("(", "a macro");
  while (ok() && !at_sign(")")) {
    const auto name = expect_name("a parameter");
    parameter p{.id = program_.intern(name), .name = program_.keep(name)};
    if (skip_sign("=")) {
      p.otherwise = expression();
    } else if (!to.empty() && to.back().otherwise) {
      refuse("a parameter without a default stands behind one with a default");
    }
    to.push_back(p);
    if (!skip_sign(",")) break;
  }
  expect_sign(")", "a macro");
}

macro_definition* parser::open_macro(std::string_view name) {
  auto* m = std::pmr::polymorphic_allocator<>(&program_.pool).new_object<macro_definition>();
  m->name = program_.keep(name);
  return m;
}

/// The body sees `varargs`, `kwargs` and `caller` as the macro's own.
void parser::macro_body(macro_definition& m, std::string_view end) {
  macro_definition* outside = std::exchange(inside_, &m);
  const auto loops = std::exchange(loops_, 0);
  m.body = statements({end});
  advance();
  end_tag(end);
  loops_ = loops;
  inside_ = outside;
}

const statement* parser::macro(uint32_t line) {
  statement* s = make(act::macro, line);
  advance();
  const auto name = expect_name("a macro");
  macro_definition* m = open_macro(name);
  s->id = program_.intern(name);
  s->macro = m;
  std::vector<parameter> row;
  parameters(row);
  m->parameters = keep(row);
  end_tag("macro");
  macro_body(*m, "endmacro");
  return s;
}

const statement* parser::call_block(uint32_t line) {
  statement* s = make(act::call, line);
  macro_definition* m = open_macro("caller");
  s->macro = m;
  advance();
  std::vector<parameter> row;
  if (at_sign("(")) parameters(row);
  m->parameters = keep(row);
  s->given = unary(true);
  if (ok() && s->given->what != op::call) refuse_at(line, "expected a call in {% call %}");
  end_tag("call");
  macro_body(*m, "endcall");
  return s;
}

const statement* parser::filter_block(uint32_t line) {
  statement* s = make(act::filter, line);
  advance();
  s->given = filters(filter(make(op::captured, line)));
  end_tag("filter");
  s->body = statements({"endfilter"});
  advance();
  end_tag("endfilter");
  return s;
}

const statement* parser::with(uint32_t line) {
  statement* s = make(act::with, line);
  std::vector<binding> bindings;
  advance();
  while (ok() && now().what != token_kind::block_end) {
    if (!bindings.empty()) expect_sign(",", "a with");
    binding b;
    b.to = assign_target(false);
    expect_sign("=", "a with");
    b.given = expression();
    bindings.push_back(b);
  }
  end_tag("with");
  s->bindings = keep(bindings);
  s->body = statements({"endwith"});
  advance();
  end_tag("endwith");
  return s;
}

}  // namespace lethe::jinja
