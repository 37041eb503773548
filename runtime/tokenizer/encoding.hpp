#pragma once

#include "runtime/tokenizer/tokenizer.hpp"
#include "runtime/tokenizer/tokenizer_parts.hpp"

namespace lethe {

/// Appends the ids of `text`, which must be valid UTF-8, without what stands around it.
result<void> encode_text(const tokenizer_parts& parts, std::string_view text, bool parse_special,
                         std::pmr::vector<uint32_t>& out);

}  // namespace lethe
