#pragma once

#include <simdjson.h>

#include <optional>
#include <string_view>

#include "runtime/base/result.hpp"

/// Members of a JSON object whose shape a file decides, not we. A member that is absent or null
/// takes the default; one of the wrong kind is refused by its name.
namespace lethe::json {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

std::optional<element> find(object o, std::string_view key);
result<object> as_object(element e, std::string_view name);
result<array> as_array(element e, std::string_view name);
result<std::string_view> as_text(element e, std::string_view name);

result<std::string_view> text(object o, std::string_view key);
result<std::string_view> text(object o, std::string_view key, std::string_view otherwise);
result<bool> flag(object o, std::string_view key, bool otherwise);
result<std::optional<bool>> flag(object o, std::string_view key);
result<uint32_t> number(object o, std::string_view key);
result<uint32_t> number(object o, std::string_view key, uint32_t otherwise);
result<array> list(object o, std::string_view key);

}  // namespace lethe::json
