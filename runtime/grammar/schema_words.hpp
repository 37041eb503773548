#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "runtime/json/json_slice.hpp"

namespace lethe {

/// Keywords that say what is valid.
enum class schema_word : uint8_t {
  type,
  enumeration,
  constant,
  any_of,
  one_of,
  all_of,
  reference,
  properties,
  required,
  additional,
  least_properties,
  most_properties,
  items,
  prefix_items,
  least_items,
  most_items,
  unique_items,
  least_length,
  most_length,
  pattern,
  format,
  minimum,
  maximum,
  above,
  below,
  multiple_of,
};

inline constexpr std::array schema_word_names = {"type",
                                                 "enum",
                                                 "const",
                                                 "anyOf",
                                                 "oneOf",
                                                 "allOf",
                                                 "$ref",
                                                 "properties",
                                                 "required",
                                                 "additionalProperties",
                                                 "minProperties",
                                                 "maxProperties",
                                                 "items",
                                                 "prefixItems",
                                                 "minItems",
                                                 "maxItems",
                                                 "uniqueItems",
                                                 "minLength",
                                                 "maxLength",
                                                 "pattern",
                                                 "format",
                                                 "minimum",
                                                 "maximum",
                                                 "exclusiveMinimum",
                                                 "exclusiveMaximum",
                                                 "multipleOf"};

/// The keywords of one schema.
class schema_words {
 public:
  std::optional<json_slice>& operator[](schema_word w) { return of_[size_t(w)]; }
  const std::optional<json_slice>& operator[](schema_word w) const { return of_[size_t(w)]; }
  static const char* name(schema_word w) { return schema_word_names[size_t(w)]; }

  /// Takes the value of a keyword; false if it is none.
  bool take(json_slice key, json_slice value) {
    for (size_t i = 0; i < schema_word_names.size(); ++i)
      if (key.says(schema_word_names[i])) return of_[i] = value, true;
    return false;
  }
  /// The first keyword that is there and not one of these.
  std::optional<schema_word> besides(std::initializer_list<schema_word> allowed) const {
    for (size_t i = 0; i < of_.size(); ++i) {
      bool known = false;
      for (auto a : allowed) known |= size_t(a) == i;
      if (of_[i] && !known) return schema_word(i);
    }
    return {};
  }
  bool any(std::initializer_list<schema_word> of) const {
    for (auto w : of)
      if ((*this)[w]) return true;
    return false;
  }

 private:
  std::array<std::optional<json_slice>, schema_word_names.size()> of_;
};

}  // namespace lethe
