#include <cstddef>
#include <cstdint>

#include "runtime/model/safetensors.hpp"

/// Both a safetensors file and its index must answer any bytes with a value or one line.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lethe::bytes_view bytes(reinterpret_cast<const std::byte*>(data), size);
  if (auto file = lethe::safetensors_file::parse(bytes, "fuzz")) {
    for (const auto& t : file->tensors())
      if (!t.data.empty() && t.data.data() + t.data.size() > bytes.data() + size) __builtin_trap();
  }
  if (auto index = lethe::read_safetensors_index(lethe::as_text(bytes), "fuzz")) {
    for (const auto& [name, file] : index->tensors)
      if (file >= index->files.size()) __builtin_trap();
  }
  return 0;
}
