#include "kernels/cuda/elementwise.inl"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/quantize.inl"
#include "kernels/cuda/ranks.inl"
#include "kernels/cuda/rms_norm.inl"
#include "kernels/cuda/rows_to_float.inl"

namespace lethe::device {

template device_error gpu::launch(const quantize&, device_stream);
template device_error gpu::launch(const rms_norm&, device_stream);
template device_error gpu::launch(const silu_multiply&, device_stream);
template device_error gpu::launch(const add_tree&, device_stream);
template device_error gpu::launch(const join_columns&, device_stream);
template device_error gpu::launch(const wipe&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::f32>&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::f16>&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::bf16>&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::q8_0>&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::q4_0>&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::q4_1>&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::q5_0>&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::q5_1>&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::q4_k>&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::q5_k>&, device_stream);
template device_error gpu::launch(const rows_to_float<dtype::q6_k>&, device_stream);

}  // namespace lethe::device
