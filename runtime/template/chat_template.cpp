#include "runtime/template/chat_template.hpp"

#include <new>

#include "runtime/template/bounds.hpp"
#include "runtime/template/evaluate.hpp"
#include "runtime/template/json.hpp"
#include "runtime/template/lexer.hpp"
#include "runtime/template/parser.hpp"
#include "runtime/template/unicode.hpp"

namespace lethe {
namespace {

using jinja::rendering;
using jinja::value;

/// A variable that the template never names need not be kept.
void define(rendering& r, jinja::scope& in, std::string_view name, const value& v) {
  const auto known = r.source.symbols.find(name);
  if (known != r.source.symbols.end() && r.take(4 * sizeof v)) in.put(known->second, v);
}

void define_input(rendering& r, jinja::scope& in, const render_input& input) {
  define(r, in, "messages", jinja::read_json(r, input.messages, "messages"));
  // Python's renderer gives `none`, not undefined, where a request has no tools.
  define(r, in, "tools",
         input.tools.empty() ? jinja::none_value() : jinja::read_json(r, input.tools, "tools"));
  define(r, in, "documents", jinja::none_value());
  define(r, in, "bos_token", value(r.keep(input.bos_token)));
  define(r, in, "eos_token", value(r.keep(input.eos_token)));
  define(r, in, "add_generation_prompt", value(input.add_generation_prompt));
  if (input.variables.empty()) return;
  const value more = jinja::read_json(r, input.variables, "variables");
  if (r.ok() && !more.is(jinja::kind::dict)) r.fail("variables: not a JSON object");
  if (!r.ok()) return;
  for (const auto& [key, held] : more.entries->all()) define(r, in, key.text, held);
}

result<std::pmr::string> render_within(const jinja::program& program, const render_input& input,
                                       std::pmr::memory_resource* memory) {
  rendering r(program, memory, input.now);
  jinja::scope variables(r.memory()), top(r.memory());
  top.outer = &variables;
  jinja::text_sink out(r);
  r.out = &out;
  define_input(r, variables, input);
  if (r.ok()) jinja::execute(r, program.body, top);
  if (!r.ok()) return error{r.why()};
  return std::pmr::string(out.view(), memory);
}

result<std::shared_ptr<const jinja::program>> parse(std::string_view source) {
  const std::string plain = jinja::with_plain_line_ends(source);
  auto tokens = jinja::tokenize(plain);
  if (!tokens) return tokens.why();
  auto program = std::make_shared<jinja::program>();
  if (auto parsed = jinja::parser(*program, *std::move(tokens)).parse(); !parsed) {
    return parsed.why();
  }
  return std::shared_ptr<const jinja::program>(std::move(program));
}

}  // namespace

chat_template::chat_template(std::shared_ptr<const jinja::program> program)
    : program_(std::move(program)) {}

result<chat_template> chat_template::compile(std::string_view source) {
  if (source.size() > limits::template_bytes_max) {
    return fail("chat template: {} bytes are above the bound of {}", source.size(),
                limits::template_bytes_max);
  }
  if (!jinja::is_utf8(source)) return fail("chat template: not valid UTF-8");
  auto program = parse(source);
  if (!program) return program.why();
  return chat_template(*std::move(program));
}

result<std::pmr::string> chat_template::render(const render_input& input,
                                               std::pmr::memory_resource* memory) const {
  try {
    return render_within(*program_, input, memory);
  } catch (const std::bad_alloc&) {  // the caller's memory, not ours to ask first
    return fail("chat template: the request's memory does not suffice for this conversation");
  }
}

}  // namespace lethe
