#pragma once

#include <string>
#include <string_view>

namespace lethe {

/// JSON with every integer of 19 digits or more given a fraction (".0"), which parsers that keep
/// integers in 64 bits read as a float. Python writes such: nearly every tokenizer_config.json has
/// "model_max_length": 1000000000000000019884624838656. Texts stay as they are.
std::string widen_integers(std::string_view json);

}  // namespace lethe
