#include "kernels/cpu_row.hpp"
//
#include "kernels/cpu/attend_layout.inl"

namespace lethe {

size_t attention_scratch_floats(uint32_t tokens, uint32_t heads, uint32_t head_dim) {
  return layout_of(tokens, heads, head_dim).floats;
}

}  // namespace lethe
