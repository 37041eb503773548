#include "runtime/model/gguf_types.hpp"

#include <fmt/format.h>

#include <array>

namespace lethe {

namespace {

// By dtype. The numbers are the format's own.
constexpr std::array<uint32_t, dtype_count> numbers = {0, 1, 30, 8, 2, 3, 6, 7, 12, 13, 14};

constexpr std::array<const char*, 40> type_names = {
    "F32",     "F16",    "Q4_0",    "Q4_1",  "",       "",      "Q5_0",  "Q5_1",
    "Q8_0",    "Q8_1",   "Q2_K",    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",
    "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
    "I8",      "I16",    "I32",     "I64",   "F64",    "IQ1_M", "BF16",  "",
    "",        "",       "TQ1_0",   "TQ2_0", "",       "",      "",      "MXFP4"};

}  // namespace

uint32_t fixed_bytes(gguf_kind kind) {
  constexpr std::array<uint32_t, gguf_kind_count> bytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return bytes[uint32_t(kind)];
}

const char* name_of(gguf_kind kind) {
  constexpr std::array<const char*, gguf_kind_count> names = {
      "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "text", "array", "u64", "i64", "f64"};
  return names[uint32_t(kind)];
}

uint32_t gguf_type_number(dtype type) { return numbers[uint8_t(type)]; }

std::optional<dtype> dtype_of_gguf(uint32_t number) {
  for (uint8_t i = 0; i < dtype_count; ++i)
    if (numbers[i] == number) return dtype(i);
  return std::nullopt;
}

std::string gguf_type_name(uint32_t number) {
  if (number < type_names.size() && *type_names[number]) return type_names[number];
  return fmt::format("type {}", number);
}

}  // namespace lethe
