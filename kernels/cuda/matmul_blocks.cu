#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_quant.inl"
#include "kernels/cuda/matmul_together.inl"

namespace lethe::device {

// Products of few rows come early.
static_assert(comes_early<products<quant_rows<dtype::q8_0, 1>>>());

template device_error gpu::launch(const products<quant_rows<dtype::q8_0, 1>>&, device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q8_0, few_rows>>&,
                                  device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q4_0, 1>>&, device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q4_0, few_rows>>&,
                                  device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q4_1, 1>>&, device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q4_1, few_rows>>&,
                                  device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q5_0, 1>>&, device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q5_0, few_rows>>&,
                                  device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q5_1, 1>>&, device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q5_1, few_rows>>&,
                                  device_stream);

}  // namespace lethe::device
