#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_int8_tile.inl"
#include "kernels/cuda/matmul_together.inl"

namespace lethe::device {

// Products of few rows come early, large tiles don't.
static_assert(comes_early<products<int8_rows<dtype::q8_0, 8>>>());
static_assert(!comes_early<int8_tile<dtype::q8_0>>());

template device_error gpu::launch(const products<int8_rows<dtype::q8_0, 8>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q8_0, 16>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q8_0, 32>>&, device_stream);
template device_error gpu::launch(const int8_tile<dtype::q8_0>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q4_0, 8>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q4_0, 16>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q4_0, 32>>&, device_stream);
template device_error gpu::launch(const int8_tile<dtype::q4_0>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q4_1, 8>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q4_1, 16>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q4_1, 32>>&, device_stream);
template device_error gpu::launch(const int8_tile<dtype::q4_1>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q5_0, 8>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q5_0, 16>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q5_0, 32>>&, device_stream);
template device_error gpu::launch(const int8_tile<dtype::q5_0>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q5_1, 8>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q5_1, 16>>&, device_stream);
template device_error gpu::launch(const products<int8_rows<dtype::q5_1, 32>>&, device_stream);
template device_error gpu::launch(const int8_tile<dtype::q5_1>&, device_stream);

}  // namespace lethe::device
