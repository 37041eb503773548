#include "kernels/cuda/attend_tensor.inl"
#include "kernels/cuda/attend_tensor_walk.inl"
#include "kernels/cuda/launch.cuh"

namespace lethe::device {

template device_error gpu::launch(const tensor_attend<kv_type::f32, false>&, device_stream);
template device_error gpu::launch(const tensor_attend<kv_type::f32, true>&, device_stream);
template device_error gpu::launch(const tensor_attend<kv_type::bf16, false>&, device_stream);
template device_error gpu::launch(const tensor_attend<kv_type::bf16, true>&, device_stream);
template device_error gpu::launch(const tensor_attend<kv_type::int8, false>&, device_stream);
template device_error gpu::launch(const tensor_attend<kv_type::int8, true>&, device_stream);
template device_error gpu::launch(const tensor_walk<kv_type::f32, 2>&, device_stream);
template device_error gpu::launch(const tensor_walk<kv_type::f32, 4>&, device_stream);
template device_error gpu::launch(const tensor_walk<kv_type::bf16, 2>&, device_stream);
template device_error gpu::launch(const tensor_walk<kv_type::bf16, 4>&, device_stream);
template device_error gpu::launch(const tensor_walk<kv_type::int8, 2>&, device_stream);
template device_error gpu::launch(const tensor_walk<kv_type::int8, 4>&, device_stream);

}  // namespace lethe::device
