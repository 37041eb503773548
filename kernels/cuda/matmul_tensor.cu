#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_tensor_tile.inl"
#include "kernels/cuda/matmul_together.inl"

namespace lethe::device {

// Products of few rows come early, large tiles don't.
static_assert(comes_early<products<tensor_products<dtype::bf16, 1, 1>>>());
static_assert(!comes_early<products<tensor_tile<dtype::bf16>>>());

template device_error gpu::launch(const products<tensor_products<dtype::bf16, 1, 1>>&,
                                  device_stream);
template device_error gpu::launch(const products<tensor_products<dtype::bf16, 1, 4>>&,
                                  device_stream);
template device_error gpu::launch(const products<tensor_products<dtype::bf16, 4, 4>>&,
                                  device_stream);
template device_error gpu::launch(const products<tensor_products<dtype::f16, 1, 1>>&,
                                  device_stream);
template device_error gpu::launch(const products<tensor_products<dtype::f16, 1, 4>>&,
                                  device_stream);
template device_error gpu::launch(const products<tensor_products<dtype::f16, 4, 4>>&,
                                  device_stream);
template device_error gpu::launch(const products<tensor_tile<dtype::bf16>>&, device_stream);
template device_error gpu::launch(const products<tensor_tile<dtype::f16>>&, device_stream);

}  // namespace lethe::device
