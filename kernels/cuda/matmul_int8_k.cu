#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_int8_tile.inl"
#include "kernels/cuda/matmul_together.inl"

namespace lethe::device {

template device_error gpu::launch(const products<int8_rows<dtype::q4_k, 8>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q4_k, 16>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q4_k, 32>>&, device_stream);
template device_error gpu::launch(const int8_tile<dtype::q4_k>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q5_k, 8>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q5_k, 16>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q5_k, 32>>&, device_stream);
template device_error gpu::launch(const int8_tile<dtype::q5_k>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q6_k, 8>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q6_k, 16>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q6_k, 32>>&, device_stream);
template device_error gpu::launch(const int8_tile<dtype::q6_k>&, device_stream);

}  // namespace lethe::device
