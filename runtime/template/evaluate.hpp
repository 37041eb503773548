#pragma once

#include "runtime/template/builtin.hpp"
#include "runtime/template/rendering.hpp"

namespace lethe::jinja {

enum class flow : uint8_t { on, leave, next };

value evaluate(rendering& r, const expr& e, scope& in);
value evaluate_call(rendering& r, const expr& e, scope& in);
flow execute(rendering& r, block statements, scope& in);
/// The text that a block prints.
value text_of(rendering& r, block statements, scope& in);
/// Calls a macro, function, method, or a loop again; `caller` is a call block's macro.
value call(rendering& r, const value& what, const arguments& in, const value* caller = nullptr);
value run_loop(rendering& r, const statement& s, const value& over, scope& in, int64_t depth);
/// A name as the template's author wrote it, for error texts.
std::string describe(const expr* e);

}  // namespace lethe::jinja
