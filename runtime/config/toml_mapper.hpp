#pragma once

#include <capnp/dynamic.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lethe {

/// What a TOML text said, beside the message that it filled.
struct toml_facts {
  /// Each one line: FILE:LINE: what is wrong, and what would be right.
  std::vector<std::string> problems;
  /// Where each given key stands, by path: "engines.tensor", "hosts[1].name".
  std::map<std::string, uint32_t> lines;

  /// The line of a key, or of the table that it would stand in, or the file's first.
  uint32_t line_of(std::string path) const;
};

/// Fills `into` from TOML by the schema alone: keys are field names in snake_case; types, bounds
/// and what is required come from the schema. All problems are found at once.
toml_facts map_toml(std::string_view text, std::string_view file,
                    capnp::DynamicStruct::Builder into);

/// "gpuMemory" as "gpu_memory".
std::string snake_case(std::string_view camel);

}  // namespace lethe
