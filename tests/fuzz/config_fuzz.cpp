#include <cmath>
#include <cstddef>
#include <cstdint>

#include "runtime/base/limits.hpp"
#include "runtime/model/config_json.hpp"
#include "runtime/model/shape_check.hpp"

/// config.json and generation_config.json of any bytes; a shape without problems is within limits.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view json(reinterpret_cast<const char*>(data), size);
  lethe::problem_list problems;
  auto config = lethe::read_config(json, "fuzz", problems);
  if (problems.empty()) {
    const auto& s = config.shape;
    if (s.layers == 0 || s.layers > lethe::limits::layers_max || s.heads % s.kv_heads ||
        s.window.size() != s.layers || s.rope.rotary > s.head_dim)
      __builtin_trap();
    for (double f : lethe::rope_frequencies(s.rope))
      if (!std::isfinite(f)) __builtin_trap();
    if (s.layers < 32) lethe::expected_tensors(s);
  }
  problems.clear();
  auto defaults = lethe::read_generation_config(json, "fuzz", problems);
  if (defaults.top_p && !(*defaults.top_p >= 0 && *defaults.top_p <= 1)) __builtin_trap();
  return 0;
}
