#pragma once

#include <memory_resource>
#include <optional>

#include "actors/cli/generate_flags.hpp"
#include "runtime/grammar/grammar.hpp"

namespace lethe {

bool has_form(const generate_flags& f);
/// What --json-object, --json-schema, --grammar or --regex asks for, compiled in the request's
/// memory; nothing where none was given.
result<std::optional<grammar>> form_of(const generate_flags& f, std::pmr::memory_resource* memory);

}  // namespace lethe
