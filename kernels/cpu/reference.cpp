#include "kernels/cpu/lanes_reference.hpp"
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

extern const cpu_row reference;
const cpu_row reference{.name = "reference",
                        .matmul = matmul<>,
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

}  // namespace lethe
