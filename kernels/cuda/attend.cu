#include "kernels/cuda/attend_decode.inl"
#include "kernels/cuda/attend_prefill.inl"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/place_heads.inl"

namespace lethe::device {

template device_error gpu::launch(const join_spans&, device_stream);
template device_error gpu::launch(const place_heads<kv_type::f32>&, device_stream);
template device_error gpu::launch(const decode_scores<kv_type::f32>&, device_stream);
template device_error gpu::launch(const decode_values<kv_type::f32>&, device_stream);
template device_error gpu::launch(const prefill<kv_type::f32>&, device_stream);
template device_error gpu::launch(const place_heads<kv_type::bf16>&, device_stream);
template device_error gpu::launch(const decode_scores<kv_type::bf16>&, device_stream);
template device_error gpu::launch(const decode_values<kv_type::bf16>&, device_stream);
template device_error gpu::launch(const prefill<kv_type::bf16>&, device_stream);
template device_error gpu::launch(const place_heads<kv_type::int8>&, device_stream);
template device_error gpu::launch(const decode_scores<kv_type::int8>&, device_stream);
template device_error gpu::launch(const decode_values<kv_type::int8>&, device_stream);
template device_error gpu::launch(const prefill<kv_type::int8>&, device_stream);

}  // namespace lethe::device
