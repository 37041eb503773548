#pragma once

#include <cstdint>

namespace lethe {

/// The blocks of a quantized row as they lie in a file, without padding. d, m: halves.
struct q8_0_block {
  uint16_t d;
  int8_t q[32];
};
struct q4_0_block {
  uint16_t d;
  uint8_t q[16];  // element i low, i + 16 high
};
struct q4_1_block {
  uint16_t d, m;
  uint8_t q[16];
};
struct q5_0_block {
  uint16_t d;
  uint8_t high[4];  // bit i: the fifth bit of element i
  uint8_t q[16];
};
struct q5_1_block {
  uint16_t d, m;
  uint8_t high[4];
  uint8_t q[16];
};
struct q4_k_block {
  uint16_t d, m;
  uint8_t scales[12];  // 8 scales and 8 minima of 6 bits: k_scales
  uint8_t q[128];      // of each 64: the first 32 low, the next 32 high
};
struct q5_k_block {
  uint16_t d, m;
  uint8_t scales[12];
  uint8_t high[32];  // bit j of byte i: the fifth bit of element 32 j + i
  uint8_t q[128];
};
struct q6_k_block {
  uint8_t low[128];   // of each 128: 32 low, 32 low, then the same bytes' high halves
  uint8_t high[64];   // of each 128: 32 bytes with two bits for each of its four 32s
  int8_t scales[16];  // of 16 elements each
  uint16_t d;
};

static_assert(sizeof(q8_0_block) == 34 && sizeof(q4_0_block) == 18 && sizeof(q4_1_block) == 20);
static_assert(sizeof(q5_0_block) == 22 && sizeof(q5_1_block) == 24 && sizeof(q4_k_block) == 144);
static_assert(sizeof(q5_k_block) == 176 && sizeof(q6_k_block) == 210);

/// The scale and minimum of each 32 of a q4_k or q5_k block.
struct k_scales {
  uint8_t scale[8], min[8];
};

/// Twelve bytes: 0 to 3 hold scales 0 to 3, 4 to 7 minima 0 to 3, in six bits each; 8 to 11 the low
/// four bits of scales 4 to 7 and, above, of minima 4 to 7; whose upper two lie in 0 to 7's tops.
inline k_scales unpack(const uint8_t (&p)[12]) {
  k_scales s;
  for (int i = 0; i < 4; ++i) {
    s.scale[i] = p[i] & 63;
    s.min[i] = p[i + 4] & 63;
    s.scale[i + 4] = uint8_t((p[i + 8] & 15) | (p[i] >> 6) << 4);
    s.min[i + 4] = uint8_t(p[i + 8] >> 4 | (p[i + 4] >> 6) << 4);
  }
  return s;
}

inline void pack(const k_scales& s, uint8_t (&p)[12]) {
  for (int i = 0; i < 4; ++i) {
    p[i] = uint8_t(s.scale[i] | (s.scale[i + 4] >> 4) << 6);
    p[i + 4] = uint8_t(s.min[i] | (s.min[i + 4] >> 4) << 6);
    p[i + 8] = uint8_t((s.scale[i + 4] & 15) | (s.min[i + 4] & 15) << 4);
  }
}

}  // namespace lethe
