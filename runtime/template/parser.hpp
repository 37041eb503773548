#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/template/ast.hpp"
#include "runtime/template/lexer.hpp"

namespace lethe::jinja {

/// Turns tokens into a program. After the first error every part gives back null and unwinds.
class parser {
 public:
  parser(program& p, std::vector<token> tokens) : program_(p), tokens_(std::move(tokens)) {}
  result<void> parse();

 private:
  // Tokens.
  const token& now() const { return tokens_[at_]; }
  const token& later(size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  bool ok() const { return why_.empty(); }
  bool at_sign(std::string_view s) const {
    return now().what == token_kind::sign && now().text == s;
  }
  bool at_word(std::string_view w) const {
    return now().what == token_kind::name && now().text == w;
  }
  bool skip_sign(std::string_view s);
  bool skip_word(std::string_view w);
  void expect_sign(std::string_view s, std::string_view in);
  void expect_word(std::string_view w, std::string_view in);
  std::string_view expect_name(std::string_view in);
  void advance() { at_ += at_ + 1 < tokens_.size(); }
  void refuse(std::string why) { refuse_at(now().line, std::move(why)); }
  void refuse_at(uint32_t line, std::string why);
  std::string found() const;

  // Nodes.
  expr* make(op what, uint32_t line);
  const expr* make(op what, uint32_t line, std::initializer_list<const expr*> of);
  const expr* constant(const value& v, uint32_t line);
  template <class T>
  std::span<const T> keep(const std::vector<T>& row);

  // Expressions, loosest first.
  const expr* expression();
  const expr* choice();
  const expr* either();
  const expr* both();
  const expr* inverted();
  const expr* comparison();
  const expr* sum();
  const expr* concatenation();
  const expr* product();
  const expr* power();
  const expr* unary(bool with_filters);
  const expr* primary();
  const expr* name_or_constant();
  const expr* number();
  const expr* strings();
  const expr* brackets();
  const expr* list();
  const expr* dict();
  const expr* postfix(const expr* e);
  const expr* after_dot(const expr* e);
  const expr* subscript(const expr* e);
  const expr* slice_or_index(bool& is_slice, std::vector<const expr*>& bounds);
  const expr* filters(const expr* e);
  const expr* filter(const expr* e);
  const expr* test(const expr* e);
  bool at_test_argument() const;
  void call_arguments(expr& call);
  /// One expression, or a tuple of several; `conditional`: `a if b` may be its elements.
  const expr* row(bool conditional, bool bracketed = false);
  bool at_row_end() const;

  // Statements.
  block statements(std::initializer_list<std::string_view> ends);
  const statement* one_statement();
  const statement* tag_statement();
  statement* make(act what, uint32_t line);
  const statement* print();
  const statement* branch(uint32_t line);
  const statement* loop(uint32_t line);
  const statement* assignment(uint32_t line);
  const statement* macro(uint32_t line);
  const statement* call_block(uint32_t line);
  const statement* filter_block(uint32_t line);
  const statement* with(uint32_t line);
  const statement* plain_block(uint32_t line);
  block loop_body(std::initializer_list<std::string_view> ends);
  void parameters(std::vector<parameter>& to);
  macro_definition* open_macro(std::string_view name);
  void macro_body(macro_definition& m, std::string_view end);
  target assign_target(bool with_attribute);
  target one_target(bool with_attribute);
  void end_tag(std::string_view in);
  bool at_end_of(std::initializer_list<std::string_view> ends) const;

  /// Counts nesting; refuses what would need too much stack.
  class nested {
   public:
    explicit nested(parser& p);
    nested(const nested&) = delete;
    ~nested() { --p_.depth_; }

   private:
    parser& p_;
  };

  program& program_;
  std::vector<token> tokens_;
  size_t at_ = 0;
  std::string why_;
  uint32_t depth_ = 0, loops_ = 0, branches_ = 0;
  macro_definition* inside_ = nullptr;  // the macro being read
};

template <class T>
std::span<const T> parser::keep(const std::vector<T>& row) {
  if (row.empty()) return {};
  T* at = static_cast<T*>(program_.pool.allocate(row.size() * sizeof(T), alignof(T)));
  std::uninitialized_copy(row.begin(), row.end(), at);
  return {at, row.size()};
}

}  // namespace lethe::jinja
