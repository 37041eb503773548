#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_float.inl"
#include "kernels/cuda/matmul_together.inl"

namespace lethe::device {

// Products of few rows come early, large tiles don't.
static_assert(comes_early<products<float_rows<dtype::bf16, 1>>>());
static_assert(!comes_early<products<float_tile<dtype::bf16>>>());

template device_error gpu::launch(const products<float_rows<dtype::f32, 1>>&, device_stream);
template device_error gpu::launch(const products<float_rows<dtype::f32, few_rows>>&, device_stream);
template device_error gpu::launch(const products<float_tile<dtype::f32>>&, device_stream);
template device_error gpu::launch(const products<float_rows<dtype::f16, 1>>&, device_stream);
template device_error gpu::launch(const products<float_rows<dtype::f16, few_rows>>&, device_stream);
template device_error gpu::launch(const products<float_tile<dtype::f16>>&, device_stream);
template device_error gpu::launch(const products<float_rows<dtype::bf16, 1>>&, device_stream);
template device_error gpu::launch(const products<float_rows<dtype::bf16, few_rows>>&,
                                  device_stream);
template device_error gpu::launch(const products<float_tile<dtype::bf16>>&, device_stream);

}  // namespace lethe::device
