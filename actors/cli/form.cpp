#include "actors/cli/form.hpp"

#include <new>

#include "actors/cli/read_input.hpp"
#include "runtime/grammar/gbnf.hpp"
#include "runtime/grammar/json_rules.hpp"
#include "runtime/grammar/pattern_rules.hpp"
#include "runtime/grammar/schema.hpp"

namespace lethe {

bool has_form(const generate_flags& f) {
  return f.json_object || !f.schema_path.empty() || !f.grammar_path.empty() || !f.pattern.empty();
}

namespace {

result<grammar> compiled(const generate_flags& f, std::pmr::memory_resource* memory) {
  if (f.json_object) return json_object_grammar(memory);
  if (!f.pattern.empty()) return pattern_grammar(f.pattern, memory);
  bool schema = !f.schema_path.empty();
  const auto& path = schema ? f.schema_path : f.grammar_path;
  auto text = read_input(path);
  if (!text) return text.why();
  auto made = schema ? schema_grammar(std::string_view(*text), memory) : parse_gbnf(*text, memory);
  if (!made) return fail("{}: {}", path, made.why().text);
  return made;
}

}  // namespace

result<std::optional<grammar>> form_of(const generate_flags& f,
                                       std::pmr::memory_resource* memory) try {
  if (!has_form(f)) return std::optional<grammar>();
  auto made = compiled(f, memory);
  if (!made) return made.why();
  return std::optional<grammar>(*std::move(made));
} catch (const std::bad_alloc&) {
  return fail("the form of the answer does not fit the request's memory; make it simpler");
}

}  // namespace lethe
