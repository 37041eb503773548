#include "runtime/template/builtin.hpp"
#include "runtime/template/operators.hpp"

namespace lethe::jinja {
namespace {

value attr(rendering& r, const arguments& in) {
  if (in.self.is_undefined()) return r.fail("an attribute of an undefined value");
  return attribute(r, in.self, text_argument(r, in, 0, {}, "attr's name"));
}

/// Nothing, none and 0 are as good as an empty list here.
std::span<const value> chosen_from(rendering& r, const arguments& in) {
  return truth(in.self) ? elements(r, in.self) : std::span<const value>();
}

/// map(attribute=..., default=...) or map("filter", arguments...).
value map(rendering& r, const arguments& in) {
  const value* path = nullptr;
  value otherwise;
  for (const auto& n : in.named) {
    if (n.name == "attribute") path = &n.is;
    if (n.name == "default" && !n.is.is(kind::none)) otherwise = n.is;
  }
  const bool by_filter = !in.rest.empty();
  const builtin* filter = nullptr;
  if (by_filter && in.rest[0].is_text()) filter = find_filter(in.rest[0].text);
  if (by_filter ? !filter : !path) return r.fail("map needs a known filter's name or attribute=");
  sequence* s = r.make_sequence();
  s->lazy = true;
  for (const value& v : chosen_from(r, in)) {
    value made;
    if (filter) {
      made = invoke(r, *filter, {.self = v, .rest = in.rest.subspan(1), .named = in.named});
    } else {
      made = deep_item(r, v, *path, otherwise);
    }
    if (!r.ok()) break;
    r.push(*s, made);
  }
  return r.list_of(s);
}

/// select, reject, selectattr, rejectattr: `keeps` what the test says, of the item or of its
/// attribute; without a test the value's own truth.
value choose(rendering& r, const arguments& in, bool keeps, bool by_attribute) {
  if (by_attribute && in.rest.empty()) return r.fail("selectattr needs an attribute's name");
  const auto given = in.rest.subspan(by_attribute);
  const builtin* test = nullptr;
  if (!given.empty()) {
    if (given[0].is_text()) test = find_test(given[0].text);
    if (!test) return r.fail("select or reject by an unknown test; supported: {}", test_names());
  }
  sequence* s = r.make_sequence();
  s->lazy = true;
  for (const value& v : chosen_from(r, in)) {
    const value subject = by_attribute ? deep_item(r, v, in.rest[0]) : v;
    const value holds =
        test ? invoke(r, *test, {.self = subject, .rest = given.subspan(1), .named = in.named})
             : subject;
    if (!r.step()) break;
    if (truth(holds) == keeps) r.push(*s, v);
  }
  return r.list_of(s);
}

value select(rendering& r, const arguments& in) { return choose(r, in, true, false); }
value reject(rendering& r, const arguments& in) { return choose(r, in, false, false); }
value selectattr(rendering& r, const arguments& in) { return choose(r, in, true, true); }
value rejectattr(rendering& r, const arguments& in) { return choose(r, in, false, true); }

}  // namespace

builtins choosing_filters() {
  static constexpr builtin rows[] = {
      {"map", map, "*"},
      {"select", select, "*"},
      {"reject", reject, "*"},
      {"selectattr", selectattr, "*"},
      {"rejectattr", rejectattr, "*"},
      {"attr", attr, "name", 1},
  };
  return rows;
}

}  // namespace lethe::jinja
