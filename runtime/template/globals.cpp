#include <algorithm>
#include <utility>

#include "runtime/template/builtin.hpp"
#include "runtime/template/operators.hpp"

namespace lethe::jinja {
namespace {

/// Reached only where the refusal is not called by its name; the evaluator sees to the words.
value raise_exception(rendering& r, const arguments&) { return r.fail("refused by the template"); }

value range(rendering& r, const arguments& in) {
  int64_t from = 0, to = whole_argument(r, in, 0, 0, "range's bound");
  if (in.has(1)) from = std::exchange(to, whole_argument(r, in, 1, 0, "range's bound"));
  const int64_t by = whole_argument(r, in, 2, 1, "range's step");
  if (by == 0) return r.fail("range with step 0");
  sequence* all = r.make_sequence();
  for (int64_t i = from; (by > 0 ? i < to : i > to) && r.ok();) {
    if (int64_t(all->items.size()) == limits::template_range_max) {
      return r.fail("range of more than {} numbers", limits::template_range_max);
    }
    r.push(*all, value(i));
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  return r.list_of(all);
}

/// dict(a=1), dict(other, a=1), dict of pairs; namespace takes the same.
dictionary* named_values(rendering& r, const arguments& in, std::string_view what) {
  dictionary* d = r.make_dictionary();
  if (in.rest.size() > 1) r.fail("{} takes one argument by position", what);
  for (const value& given : in.rest) {
    if (given.is(kind::dict)) {
      for (const auto& [key, held] : given.entries->all()) r.put(*d, key, held);
      continue;
    }
    for (const value& pair : elements(r, given)) {
      const auto two = elements(r, pair);
      if (two.size() != 2) r.fail("{} of something else than pairs", what);
      if (!r.ok()) break;
      r.put(*d, two[0], two[1]);
    }
  }
  for (const auto& [name, v] : in.named) r.put(*d, value(name), v);
  return d;
}

value make_dict(rendering& r, const arguments& in) { return value(named_values(r, in, "dict")); }

value make_namespace(rendering& r, const arguments& in) {
  return value(r.make<space_object>(named_values(r, in, "namespace")));
}

value make_plain_list(rendering& r, const arguments& in) {
  return make_list(r, in.has(0) ? elements(r, *in.bound[0]) : std::span<const value>());
}

value make_cycler(rendering& r, const arguments& in) {
  if (in.rest.empty()) return r.fail("cycler of nothing");
  auto* c = r.make<cycler_object>();
  c->items = elements(r, make_list(r, in.rest));
  return value(c);
}

value make_joiner(rendering& r, const arguments& in) {
  return value(r.make<joiner_object>(text_argument(r, in, 0, ", ", "joiner's separator")));
}

value strftime_now(rendering& r, const arguments& in) {
  // All of strftime's that print a bounded number of bytes whatever the locale.
  constexpr std::string_view allowed = "aAbBdeHIjmMpSyYZTFDRhnt%-";
  const auto format = text_argument(r, in, 0, {}, "strftime_now's format");
  text_sink out(r);
  std::tm parts{};
  if (!r.ok() || !gmtime_r(&r.now, &parts)) return r.fail("strftime_now: no such time");
  for (size_t i = 0; i < format.size() && r.ok(); ++i) {
    if (format[i] != '%') {
      out.append(format[i]);
      continue;
    }
    const bool bare = i + 2 < format.size() && format[i + 1] == '-';  // %-d: no leading zero
    i += bare ? 2 : 1;
    if (i >= format.size() || allowed.find(format[i]) == allowed.npos) {
      return r.fail("strftime_now: a directive that is not supported; supported: {}", allowed);
    }
    const char directive[] = {'%', format[i], 0};
    char room[64];
    std::string_view text(room, std::strftime(room, sizeof room, directive, &parts));
    while (bare && text.size() > 1 && text[0] == '0') text.remove_prefix(1);
    out.append(text);
  }
  return value(out.view());
}

value refuse_lipsum(rendering& r, const arguments&) { return r.fail("lipsum is not supported"); }

// Objects.

value cycle(rendering& r, const arguments& in) {
  const auto& loop = static_cast<const loop_object&>(*in.self.thing);
  if (in.rest.empty()) return r.fail("loop.cycle of nothing");
  return in.rest[loop.index % in.rest.size()];
}

value changed(rendering& r, const arguments& in) {
  auto& loop = static_cast<loop_object&>(*in.self.thing);
  const value now = make_list(r, in.rest);
  if (!r.ok() || (loop.compared && equals(r, loop.last, now))) return value(false);
  loop.last = now;
  loop.compared = true;
  return value(true);
}

value next(rendering&, const arguments& in) {
  auto& c = static_cast<cycler_object&>(*in.self.thing);
  return c.items[std::exchange(c.index, (c.index + 1) % c.items.size())];
}

value reset(rendering&, const arguments& in) {
  static_cast<cycler_object&>(*in.self.thing).index = 0;
  return none_value();
}

}  // namespace

std::string_view object_name(const object& o) {
  switch (o.what) {
    case object::form::space:
      return "a namespace";
    case object::form::loop:
      return "a loop";
    case object::form::macro:
      return "a macro";
    case object::form::function:
      return "a function";
    case object::form::method:
      return "a method";
    case object::form::cycler:
      return "a cycler";
    case object::form::joiner:
      return "a joiner";
  }
  return "an object";
}

builtins object_methods(const object& o) {
  static constexpr builtin of_loop[] = {{"cycle", cycle, "*"}, {"changed", changed, "*"}};
  static constexpr builtin of_cycler[] = {{"next", next, ""}, {"reset", reset, ""}};
  if (o.what == object::form::loop) return of_loop;
  if (o.what == object::form::cycler) return of_cycler;
  return {};
}

builtins all_globals() {
  static constexpr builtin rows[] = {
      {"raise_exception", raise_exception, "*"},
      {"strftime_now", strftime_now, "format", 1},
      {"range", range, "start stop step", 1},
      {"namespace", make_namespace, "*"},
      {"dict", make_dict, "*"},
      {"list", make_plain_list, "iterable"},
      {"cycler", make_cycler, "*"},
      {"joiner", make_joiner, "sep"},
      {"lipsum", refuse_lipsum, "*"},
  };
  return rows;
}

}  // namespace lethe::jinja
