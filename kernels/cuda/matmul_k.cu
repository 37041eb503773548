#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_quant.inl"
#include "kernels/cuda/matmul_together.inl"

namespace lethe::device {

template device_error gpu::launch(const products<quant_rows<dtype::q4_k, 1>>&, device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q4_k, few_rows>>&,
                                  device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q5_k, 1>>&, device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q5_k, few_rows>>&,
                                  device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q6_k, 1>>&, device_stream);
template device_error gpu::launch(const products<quant_rows<dtype::q6_k, few_rows>>&,
                                  device_stream);

}  // namespace lethe::device
