#include "runtime/model/dtype_name.hpp"

namespace lethe {

std::string dtype_names() {
  std::string all;
  for (uint8_t i = 0; i < dtype_count; ++i) {
    if (i) all += ", ";
    all += name_of(dtype(i));
  }
  return all;
}

result<dtype> dtype_named(std::string_view name) {
  for (uint8_t i = 0; i < dtype_count; ++i)
    if (name == name_of(dtype(i))) return dtype(i);
  return fail("\"{}\" is not a tensor type; supported: {}", name, dtype_names());
}

}  // namespace lethe
