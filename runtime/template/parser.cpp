#include "runtime/template/parser.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/template/bounds.hpp"

namespace lethe::jinja {

symbol program::intern(std::string_view name) {
  if (const auto known = symbols.find(name); known != symbols.end()) return known->second;
  return symbols.emplace(keep(name), symbol(symbols.size() + 1)).first->second;
}

std::string_view program::keep(std::string_view text) {
  if (text.empty()) return {};
  char* at = static_cast<char*>(pool.allocate(text.size(), 1));
  std::memcpy(at, text.data(), text.size());
  return {at, text.size()};
}

result<void> parser::parse() {
  program_.loop = program_.intern("loop");
  program_.caller = program_.intern("caller");
  program_.varargs = program_.intern("varargs");
  program_.kwargs = program_.intern("kwargs");
  program_.body = statements({});
  if (ok() && now().what != token_kind::end) refuse("a block ends that was not opened: " + found());
  if (!ok()) return error{why_};
  return {};
}

parser::nested::nested(parser& p) : p_(p) {
  if (++p_.depth_ > limits::template_syntax_depth_max) p_.refuse("too deeply nested");
}

bool parser::skip_sign(std::string_view s) {
  const bool is = at_sign(s);
  if (is) advance();
  return is;
}

bool parser::skip_word(std::string_view w) {
  const bool is = at_word(w);
  if (is) advance();
  return is;
}

void parser::expect_sign(std::string_view s, std::string_view in) {
  if (!skip_sign(s)) refuse(fmt::format("expected \"{}\" in {}, found {}", s, in, found()));
}

void parser::expect_word(std::string_view w, std::string_view in) {
  if (!skip_word(w)) refuse(fmt::format("expected \"{}\" in {}, found {}", w, in, found()));
}

std::string_view parser::expect_name(std::string_view in) {
  const token word = now();
  if (word.what != token_kind::name)
    refuse(fmt::format("expected the name of {}, found {}", in, found()));
  advance();
  return word.text;
}

void parser::refuse_at(uint32_t line, std::string why) {
  if (ok()) why_ = fmt::format("chat template line {}: {}", line, why);
}

/// The current token, for an error text: short, and of the template only.
std::string parser::found() const {
  constexpr size_t shown_max = 40;
  if (now().what == token_kind::end) return "the end of the template";
  if (now().what == token_kind::data) return "text";
  if (now().text.size() > shown_max) return "a long token";
  return fmt::format("\"{}\"", now().text);
}

expr* parser::make(op what, uint32_t line) {
  expr* e = std::pmr::polymorphic_allocator<>(&program_.pool).new_object<expr>();
  e->what = what;
  e->line = line;
  return e;
}

const expr* parser::make(op what, uint32_t line, std::initializer_list<const expr*> of) {
  expr* e = make(what, line);
  e->of = keep(std::vector<const expr*>(of));
  return e;
}

const expr* parser::constant(const value& v, uint32_t line) {
  expr* e = make(op::constant, line);
  e->constant = v;
  return e;
}

statement* parser::make(act what, uint32_t line) {
  statement* s = std::pmr::polymorphic_allocator<>(&program_.pool).new_object<statement>();
  s->what = what;
  s->line = line;
  return s;
}

}  // namespace lethe::jinja
