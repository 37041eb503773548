#pragma once

#include "runtime/model/quant_blocks.hpp"

namespace lethe {

/// The nearest integer within [least, most]; `least` for NaN.
int nearest(float x, int least, int most);

/// One block of 256. Scales come from a small search that weighs large elements more.
void write_block(const float* x, q4_k_block& block);
void write_block(const float* x, q5_k_block& block);
void write_block(const float* x, q6_k_block& block);

}  // namespace lethe
