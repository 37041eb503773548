#include "kernels/cpu/lanes_avx512.hpp"
//
#include "kernels/cpu/products_vnni.hpp"
//
#include "kernels/cpu/dot_direct.inl"
//
#include "kernels/cpu/units.inl"
//
#include "kernels/cpu/segments.inl"
//
#include "kernels/cpu/matmul_float.inl"
#include "kernels/cpu/matmul_quant.inl"
//
#include "kernels/cpu/matmul.inl"
#include "kernels/cpu/quantize.inl"
#include "kernels/cpu/rows.inl"
#include "kernels/cpu/vector_ops.inl"
//
#include "kernels/cpu/attend.inl"
#include "kernels/cpu/draw.inl"

namespace lethe {

namespace {

constexpr cpu_row row_of(const char* name, decltype(cpu_row::matmul) products) {
  return {.name = name,
          .matmul = products,
          .quantize = quantize,
          .row_to_float = row_to_float,
          .rms_norm = rms_norm,
          .rope = rope,
          .kv_store = kv_store,
          .attend = attend,
          .silu_multiply = silu_multiply,
          .add = add,
          .add_bias = add_bias,
          .draw = draw_functions};
}

}  // namespace

extern const cpu_row avx512vnni, zen4;
constinit const cpu_row avx512vnni = row_of("avx512vnni", matmul<false>);
constinit const cpu_row zen4 = row_of("zen4", matmul<true>);

}  // namespace lethe
