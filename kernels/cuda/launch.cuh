#pragma once

#include "kernels/cuda/device.cuh"

namespace lethe::device {

/// Shared memory that a launch has without asking for it.
constexpr uint32_t unasked = 48 << 10;

template <class Body>
device_error gpu::launch(const Body& body, device_stream stream) {
  launch_shape shape = body.shape();
  if (shape.x == 0 || shape.y == 0) return cudaSuccess;
  uint32_t shared = shape.shared_words * sizeof(float);
  if (shared > unasked) {
    cudaError_t error = cudaFuncSetAttribute(
        kernel<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared));
    if (error != cudaSuccess) return error;
  }
  kernel<<<dim3(shape.x, shape.y), Body::threads, shared, stream>>>(body);
  return cudaGetLastError();
}

}  // namespace lethe::device
