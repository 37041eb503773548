#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lethe {

/// The name that checkpoint.hpp documents, of a name in a file; none: unknown there.
std::optional<std::string> name_from_hf(std::string_view name);
std::optional<std::string> name_from_gguf(std::string_view name);
/// The name in a file; `name` must be one of ours.
std::string name_in_hf(std::string_view name);
std::string name_in_gguf(std::string_view name);

/// Buffers that older writers stored beside the weights; they follow from the shape.
bool is_derived_buffer(std::string_view hf_or_gguf_name);

}  // namespace lethe
