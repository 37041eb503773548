#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parallel/shape.hpp"
#include "runtime/model/gguf_write.hpp"

namespace lethe {

void add_general(std::string_view architecture, std::string_view name, dtype type,
                 gguf_header& header);
void add_shape(const model_shape& shape, std::string_view architecture, gguf_header& header);

/// llama3's scaling as GGUF keeps it (rope_freqs.weight): what divides each pair's frequency.
/// Empty for other models.
std::vector<float> rope_factors(const rope_shape& rope);

}  // namespace lethe
