#include <bit>

#include "runtime/model/quantize.hpp"

namespace lethe {

uint16_t f16_of(float value) noexcept {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;   // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds to 65536 or more
  if (magnitude < 0x38800000) {
    // Below 2^-14 halves are multiples of 2^-24, which is the last place of 0.5: adding that lets
    // the hardware round.
    float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | uint16_t(std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(0.5f));
  }
  uint32_t odd = magnitude >> 13 & 1;
  return sign | uint16_t((magnitude - (112u << 23) + 0xfff + odd) >> 13);
}

float f32_of_f16(uint16_t bits) noexcept {
  uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00)  // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude < 0x400) {
    float small = float(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(small));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

uint16_t bf16_of(float value) noexcept {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 0x40);  // NaN, made quiet
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float f32_of_bf16(uint16_t bits) noexcept { return std::bit_cast<float>(uint32_t{bits} << 16); }

}  // namespace lethe
