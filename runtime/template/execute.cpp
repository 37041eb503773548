#include <algorithm>
#include <utility>

#include "runtime/template/evaluate.hpp"

namespace lethe::jinja {
namespace {

void assign(rendering& r, const target& to, const value& v, scope& in);

void assign_attribute(rendering& r, const target& to, const value& v, scope& in) {
  for (scope* s = &in; s; s = s->outer) {
    const value* held = s->find(to.id);
    if (!held) continue;
    if (!held->is(kind::object) || held->thing->what != object::form::space) break;
    return r.put(*static_cast<space_object*>(held->thing)->held, value(to.attribute), v);
  }
  r.fail("{{% set {}.{} %}}, but {} is no namespace()", to.text, to.attribute, to.text);
}

void assign_several(rendering& r, const target& to, const value& v, scope& in) {
  const auto items = elements(r, v);
  if (!r.ok()) return;
  if (items.size() != to.of.size()) {
    r.fail("{} values for {} variables", items.size(), to.of.size());
    return;
  }
  for (size_t i = 0; i < items.size(); ++i) assign(r, to.of[i], items[i], in);
}

[[gnu::noinline]] void assign(rendering& r, const target& to, const value& v, scope& in) {
  switch (to.what) {
    case target::form::name:
      if (r.take(sizeof(scope::variable))) in.put(to.id, v);
      return;
    case target::form::attribute:
      return assign_attribute(r, to, v, in);
    case target::form::several:
      return assign_several(r, to, v, in);
  }
}

[[gnu::noinline]] value macro_value(rendering& r, const macro_definition* m, scope& in) {
  for (scope* s = &in; s && !s->captured; s = s->outer) s->captured = true;
  auto* macro = r.make<macro_object>();
  macro->source = m;
  macro->around = &in;
  return value(macro);
}

[[gnu::noinline]] void print(rendering& r, const statement& s, scope& in) {
  const value v = evaluate(r, *s.given, in);
  if (r.ok()) append_text(r, *r.out, v);
}

[[gnu::noinline]] flow branch(rendering& r, const statement& s, scope& in) {
  for (const arm& a : s.arms) {
    const bool taken = !a.when || truth(evaluate(r, *a.when, in));
    if (!r.ok()) return flow::leave;
    if (taken) return execute(r, a.then, in);
  }
  return flow::on;
}

/// The text of a body, after the statement's filters.
[[gnu::noinline]] value filtered(rendering& r, const statement& s, scope& in) {
  scope* inside = r.open_scope(&in);
  const value text = text_of(r, s.body, *inside);
  r.close_scope(inside);
  if (!r.ok()) return {};
  r.captured = text;
  return evaluate(r, *s.given, in);
}

[[gnu::noinline]] void call_block(rendering& r, const statement& s, scope& in) {
  const value caller = macro_value(r, s.macro, in);
  // The call with one more thing to give: its callee reads `caller`.
  const expr& e = *s.given;
  const value what = evaluate(r, *e.of[0], in);
  if (!r.ok()) return;
  std::pmr::vector<value> rest(r.memory());
  std::pmr::vector<named_value> named(r.memory());
  for (const expr* part : e.of.subspan(1)) rest.push_back(evaluate(r, *part, in));
  for (const auto& [name, part] : e.named) named.push_back({name, evaluate(r, *part, in)});
  const value text = r.ok() ? call(r, what, {.rest = rest, .named = named}, &caller) : value();
  if (r.ok()) append_text(r, *r.out, text);
}

[[gnu::noinline]] flow with(rendering& r, const statement& s, scope& in) {
  scope* inside = r.open_scope(&in);
  // The values see the outer variables only.
  for (const binding& b : s.bindings) {
    const value v = evaluate(r, *b.given, in);
    if (!r.ok()) break;
    assign(r, b.to, v, *inside);
  }
  const flow how = r.ok() ? execute(r, s.body, *inside) : flow::leave;
  r.close_scope(inside);
  return how;
}

flow execute_one(rendering& r, const statement& s, scope& in) {
  r.at(s.line);
  switch (s.what) {
    case act::text:
      r.out->append(s.text);
      break;
    case act::print:
      print(r, s, in);
      break;
    case act::branch:
      return branch(r, s, in);
    case act::loop: {
      const value over = evaluate(r, *s.given, in);
      if (r.ok()) run_loop(r, s, over, in, 1);
      break;
    }
    case act::assign: {
      const value v = evaluate(r, *s.given, in);
      if (r.ok()) assign(r, s.to, v, in);
      break;
    }
    case act::assign_block: {
      const value v = filtered(r, s, in);
      if (r.ok()) assign(r, s.to, v, in);
      break;
    }
    case act::filter: {
      const value v = filtered(r, s, in);
      if (r.ok()) append_text(r, *r.out, v);
      break;
    }
    case act::macro:
      in.put(s.id, macro_value(r, s.macro, in));
      break;
    case act::call:
      call_block(r, s, in);
      break;
    case act::with:
      return with(r, s, in);
    case act::evaluate:
      evaluate(r, *s.given, in);
      break;
    case act::leave:
      return flow::leave;
    case act::next:
      return flow::next;
  }
  return flow::on;
}

/// The items whose turn it will be, the loop's condition applied.
std::span<const value> chosen(rendering& r, const statement& s, const value& over, scope& in) {
  const auto all = elements(r, over);
  if (!s.only) {  // a copy: the body may change the list
    return elements(r, make_list(r, all));
  }
  sequence* kept = r.make_sequence();
  scope* inside = r.open_scope(&in);
  for (const value& v : all) {
    if (!r.ok()) break;
    assign(r, s.to, v, *inside);
    if (truth(evaluate(r, *s.only, *inside))) r.push(*kept, v);
    inside->held.clear();
  }
  r.close_scope(inside);
  return kept->items;
}

}  // namespace

value run_loop(rendering& r, const statement& s, const value& over, scope& in, int64_t depth) {
  auto* loop = r.make<loop_object>();
  loop->source = &s;
  loop->around = &in;
  loop->depth = depth;
  loop->items = chosen(r, s, over, in);
  if (r.ok() && loop->items.empty()) {
    scope* inside = r.open_scope(&in);
    execute(r, s.otherwise, *inside);
    r.close_scope(inside);
  }
  for (loop->index = 0; loop->index < loop->items.size() && r.ok(); ++loop->index) {
    scope* inside = r.open_scope(&in);
    assign(r, s.to, loop->items[loop->index], *inside);
    inside->put(r.source.loop, value(loop));
    const flow how = execute(r, s.body, *inside);
    r.close_scope(inside);
    if (how == flow::leave) break;
  }
  return {};
}

flow execute(rendering& r, block statements, scope& in) {
  const deeper level(r);
  for (const statement* s : statements) {
    if (!r.ok() || !r.step()) return flow::leave;
    if (const flow how = execute_one(r, *s, in); how != flow::on) return how;
  }
  return flow::on;
}

value text_of(rendering& r, block statements, scope& in) {
  text_sink text(r);
  text_sink* outside = std::exchange(r.out, &text);
  execute(r, statements, in);
  r.out = outside;
  return value(text.view());
}

}  // namespace lethe::jinja
