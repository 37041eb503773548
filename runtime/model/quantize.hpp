#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matrix.hpp"

namespace lethe {

/// IEEE half and bfloat16, to nearest, ties to even; NaN stays NaN.
uint16_t f16_of(float value) noexcept;
float f32_of_f16(uint16_t bits) noexcept;
uint16_t bf16_of(float value) noexcept;
float f32_of_bf16(uint16_t bits) noexcept;

/// `n` numbers of a row, whole blocks (n % block_elements(type) == 0): the plain definition of
/// each format, which kernels are held to.
void dequantize_row(dtype type, const std::byte* row, float* out, size_t n);

/// The reverse, to n / block_elements(type) * block_bytes(type) bytes. Deterministic.
void quantize_row(dtype type, const float* row, size_t n, std::byte* out);

}  // namespace lethe
