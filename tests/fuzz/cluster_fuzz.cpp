#include <cstddef>
#include <cstdint>

#include "runtime/config/layout.hpp"

/// A cluster file of any bytes; what is taken can be laid out.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view toml(reinterpret_cast<const char*>(data), size);
  auto config = lethe::cluster_config::parse(toml, "fuzz.toml");
  if (!config.problems().empty()) return 0;
  auto layout = lethe::lay_out(config, {.cores = 4, .memory = uint64_t{1} << 34});
  for (const auto& rank : layout.ranks)
    if (rank.host >= layout.hosts.size()) __builtin_trap();
  return 0;
}
