#pragma once

#include "runtime/template/ast.hpp"
#include "runtime/template/rendering.hpp"

namespace lethe::jinja {

value arithmetic(rendering& r, op what, const value& a, const value& b);
value negated(rendering& r, const value& v);
bool equals(rendering& r, const value& a, const value& b);
/// a < b; fails for kinds that have no order.
bool before(rendering& r, const value& a, const value& b);
bool contains(rendering& r, const value& in, const value& v);
bool relates(rendering& r, relation how, const value& a, const value& b);

/// `v.name`: Python's attribute first, then the item.
value attribute(rendering& r, const value& v, std::string_view name);
/// `v[key]`: the item first.
value item(rendering& r, const value& v, const value& key);
value slice(rendering& r, const value& v, const value& from, const value& to, const value& by);

/// str % values.
value format_percent(rendering& r, std::string_view format, const value& with);

}  // namespace lethe::jinja
