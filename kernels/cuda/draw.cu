#include "kernels/cuda/draw.inl"
#include "kernels/cuda/launch.cuh"

namespace lethe::device {

template device_error gpu::launch(const draw_rows&, device_stream);

}  // namespace lethe::device
