#include <algorithm>
#include <utility>

#include "runtime/template/evaluate.hpp"
#include "runtime/template/operators.hpp"

namespace lethe::jinja {
namespace {

/// The arguments of a call, filter or test, evaluated in order.
struct given {
  explicit given(rendering& r) : rest(r.memory()), named(r.memory()) {}
  std::pmr::vector<value> rest;
  std::pmr::vector<named_value> named;
  arguments view(const value& self) const { return {.self = self, .rest = rest, .named = named}; }
};

[[gnu::noinline]] void spread(rendering& r, const expr& e, const value& v, given& to) {
  if (e.what == op::spread) {
    for (const value& one : elements(r, v)) {
      if (r.step() && r.take(sizeof one)) to.rest.push_back(one);
    }
  } else if (v.is(kind::dict)) {
    for (const auto& [key, held] : v.entries->all()) {
      if (!key.is_text()) return void(r.fail("** of a dictionary with a key that is no text"));
      if (r.step() && r.take(2 * sizeof held)) to.named.push_back({key.text, held});
    }
  } else {
    r.fail("** of {}", type_name(v));
  }
}

given evaluate_arguments(rendering& r, const expr& e, scope& in) {
  given all(r);
  if (!r.take((e.of.size() + 2 * e.named.size()) * sizeof(value))) return all;
  all.rest.reserve(e.of.size());
  all.named.reserve(e.named.size());
  for (const expr* part : e.of.subspan(1)) {
    if (!r.ok()) return all;
    const bool spreads = part->what == op::spread || part->what == op::spread_named;
    const value v = evaluate(r, spreads ? *part->of[0] : *part, in);
    if (spreads) {
      spread(r, *part, v, all);
    } else {
      all.rest.push_back(v);
    }
  }
  for (const auto& [name, part] : e.named) {
    if (!r.ok()) return all;
    all.named.push_back({name, evaluate(r, *part, in)});
  }
  return all;
}

/// Only literals: text of the template's author, never of a message.
bool is_literal(const expr* e) {
  if (e->what == op::constant) return true;
  if (e->what != op::add && e->what != op::concat) return false;
  return std::ranges::all_of(e->of, is_literal);
}

[[gnu::noinline]] value refuse_conversation(rendering& r, const expr& e) {
  const expr* why = e.of.size() > 1 ? e.of[1] : e.named.empty() ? nullptr : e.named[0].given;
  if (!why || !is_literal(why)) {
    return r.fail("refused by the template; its words are withheld, they may quote a message");
  }
  scope nothing(r.memory());
  return r.fail("refused: {}", as_text(r, evaluate(r, *why, nothing)));
}

[[gnu::noinline]] void bind_parameters(rendering& r, const macro_definition& m, const arguments& in,
                                       scope& to) {
  for (size_t i = 0; i < m.parameters.size() && r.ok(); ++i) {
    const parameter& p = m.parameters[i];
    const auto by_name = std::ranges::find(in.named, p.name, &named_value::name);
    const bool named = by_name != in.named.end();
    if (i < in.rest.size()) {
      if (named) r.fail("macro {} got parameter {} twice", m.name, p.name);
      to.put(p.id, in.rest[i]);
    } else if (named) {
      to.put(p.id, by_name->is);
    } else {
      to.put(p.id, p.otherwise ? evaluate(r, *p.otherwise, to) : value());
    }
  }
}

[[gnu::noinline]] void bind_further(rendering& r, const macro_definition& m, const arguments& in,
                                    scope& to) {
  const size_t taken = std::min(in.rest.size(), m.parameters.size());
  if (m.uses_varargs) {
    const value more = make_list(r, in.rest.subspan(taken));
    to.put(r.source.varargs, value(kind::tuple, more.items));
  } else if (taken < in.rest.size()) {
    r.fail("macro {} takes {} arguments, not {}", m.name, m.parameters.size(), in.rest.size());
  }
  dictionary* others = r.make_dictionary();
  for (const auto& [name, v] : in.named) {
    if (std::ranges::find(m.parameters, name, &parameter::name) != m.parameters.end()) continue;
    if (!m.uses_kwargs) r.fail("macro {} got an argument by a name it does not know", m.name);
    r.put(*others, value(name), v);
  }
  if (m.uses_kwargs) to.put(r.source.kwargs, value(others));
}

[[gnu::noinline]] value call_macro(rendering& r, const macro_object& macro, const arguments& in,
                                   const value* caller) {
  const macro_definition& m = *macro.source;
  scope* inside = r.open_scope(macro.around);
  bind_parameters(r, m, in, *inside);
  bind_further(r, m, in, *inside);
  if (m.uses_caller) inside->put(r.source.caller, caller ? *caller : value());
  const value text = r.ok() ? text_of(r, m.body, *inside) : value();
  r.close_scope(inside);
  return text;
}

[[gnu::noinline]] value call_loop(rendering& r, const loop_object& loop, const arguments& in) {
  if (!loop.source->recursive) return r.fail("loop(...) in a loop that is not \"recursive\"");
  if (in.rest.size() != 1) return r.fail("loop(...) takes one argument");
  text_sink text(r);
  text_sink* outside = std::exchange(r.out, &text);
  run_loop(r, *loop.source, in.rest[0], *loop.around, loop.depth + 1);
  r.out = outside;
  return value(text.view());
}

[[gnu::noinline]] value call_joiner(joiner_object& j) {
  const bool first = !std::exchange(j.used, true);
  return value(first ? std::string_view() : j.between);
}

/// A method is looked up by the value's kind, without making an object of it first.
[[gnu::noinline]] value call_member(rendering& r, const expr& e, scope& in) {
  const expr& callee = *e.of[0];
  const value self = evaluate(r, *callee.of[0], in);
  if (!r.ok()) return {};
  if (self.is_undefined()) return r.fail("{} is undefined", describe(callee.of[0]));
  const builtin* method = find_method(self, callee.text);
  const value what = method ? value() : attribute(r, self, callee.text);
  const given all = evaluate_arguments(r, e, in);
  if (!r.ok()) return {};
  r.at(e.line);
  if (method) return invoke(r, *method, all.view(self));
  if (what.is_undefined()) {
    return r.fail("{} has no method \"{}\"", type_name(self), callee.text);
  }
  return call(r, what, all.view({}));
}

}  // namespace

value evaluate_call(rendering& r, const expr& e, scope& in) {
  const expr& callee = *e.of[0];
  if (e.what == op::call && callee.what == op::attribute) return call_member(r, e, in);
  if (e.what != op::call && !e.function) {
    return r.fail("unknown {} \"{}\"", e.what == op::filter ? "filter" : "test", e.text);
  }
  const value subject = evaluate(r, callee, in);
  if (!r.ok()) return {};
  const bool refuses = e.what == op::call && callee.text == "raise_exception" &&
                       subject.is(kind::object) && subject.thing->what == object::form::function;
  if (refuses) return refuse_conversation(r, e);
  const given all = evaluate_arguments(r, e, in);
  if (!r.ok()) return {};
  r.at(e.line);
  if (e.what != op::call) return invoke(r, *e.function, all.view(subject));
  if (subject.is_undefined()) return r.fail("{} is undefined", describe(&callee));
  return call(r, subject, all.view({}));
}

value call(rendering& r, const value& what, const arguments& in, const value* caller) {
  const deeper level(r);
  if (!level) return {};
  if (!what.is(kind::object)) return r.fail("{} cannot be called", type_name(what));
  switch (what.thing->what) {
    case object::form::macro:
      return call_macro(r, static_cast<const macro_object&>(*what.thing), in, caller);
    case object::form::function:
      return invoke(r, *static_cast<const function_object&>(*what.thing).source, in);
    case object::form::loop:
      return call_loop(r, static_cast<loop_object&>(*what.thing), in);
    case object::form::joiner:
      return call_joiner(static_cast<joiner_object&>(*what.thing));
    case object::form::method:
      break;
    default:
      return r.fail("{} cannot be called", type_name(what));
  }
  const auto& bound = static_cast<const method_object&>(*what.thing);
  arguments with = in;
  with.self = bound.self;
  return invoke(r, *bound.source, with);
}

}  // namespace lethe::jinja
