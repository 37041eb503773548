#pragma once

#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/grammar/builder.hpp"
#include "runtime/json/json_slice.hpp"

namespace lethe {

/// A JSON schema as a grammar: every text that fits is valid under the schema.
///
/// Objects name their properties in the schema's order. `additionalProperties` that is left out
/// means false where `properties` are given, and anything where not; a name of `properties` is
/// never given twice, others may be (readers take the last). `items` that is left out means
/// anything, behind `prefixItems` nothing. oneOf is read as anyOf. allOf joins objects of
/// properties, required, additionalProperties. Without a type the keywords that are there say
/// which one is meant. `minimum` and so on for integers; for numbers only minimum 0. Numbers have
/// at most 18 digits before the point where nothing says otherwise. Formats are enforced:
/// date-time, date, time, duration, email, hostname, ipv4, ipv6, uuid. References stay inside the
/// schema, and may be recursive.
///
/// Annotations are ignored. Whatever else would change what is valid is refused, with the pointer
/// to where it stands.
result<grammar> schema_grammar(json_slice schema, std::pmr::memory_resource* memory);
/// The same as a part of a larger grammar. What is wrong is noted in the builder.
grammar_builder::expr schema_rules(json_slice schema, grammar_builder& into);
/// The same from a text that nobody has checked yet; it must outlive the call only.
result<grammar> schema_grammar(std::string_view text, std::pmr::memory_resource* memory);

}  // namespace lethe
