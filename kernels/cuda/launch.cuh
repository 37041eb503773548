#pragma once

#include "kernels/cuda/device.cuh"

namespace lethe::device {

template <class Body>
device_error gpu::launch(const Body& body, device_stream stream) {
  launch_shape shape = body.shape();
  if (shape.x == 0 || shape.y == 0) return cudaSuccess;
  kernel<<<dim3(shape.x, shape.y), Body::threads, shape.shared_words * sizeof(float), stream>>>(
      body);
  return cudaGetLastError();
}

}  // namespace lethe::device
