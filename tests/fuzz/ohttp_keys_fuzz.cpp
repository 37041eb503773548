#include <cstddef>
#include <cstdint>

#include "runtime/crypto/ohttp_config.hpp"

/// Keys that are read can be written, and are the same when they are read again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lethe::bytes_view list(reinterpret_cast<const std::byte*>(data), size);
  auto read = lethe::read_ohttp_keys(list);
  if (!read) return 0;
  const auto written = lethe::write_ohttp_keys(*read);
  auto again = lethe::read_ohttp_keys(written);
  if (read->empty() || written.size() > size || !again || *again != *read) __builtin_trap();
  for (const auto& key : *read) {
    auto one = lethe::ohttp_config::from_bytes(key.to_bytes());
    if (!one || *one != key) __builtin_trap();
  }
  return 0;
}
