#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/matrix.hpp"

namespace lethe {

/// The types of GGUF's metadata values, by their number in the file.
enum class gguf_kind : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};
inline constexpr uint32_t gguf_kind_count = 13;

/// Bytes of one value; 0 for texts and arrays.
uint32_t fixed_bytes(gguf_kind kind);
const char* name_of(gguf_kind kind);

/// GGUF's number of a tensor type and back.
uint32_t gguf_type_number(dtype type);
std::optional<dtype> dtype_of_gguf(uint32_t number);
/// What the format calls it ("Q2_K"), also where we do not read it; "type 99" for unknown ones.
std::string gguf_type_name(uint32_t number);

}  // namespace lethe
