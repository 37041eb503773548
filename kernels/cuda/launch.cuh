#pragma once

#include "kernels/cuda/device.cuh"

namespace lethe::device {

/// Shared memory that a launch has without asking for it.
constexpr uint32_t unasked = 48 << 10;

/// Whether this thread's device knows kernels that begin before the one before has ended.
inline bool kernels_come_early() {
  static thread_local int asked = -1, major = 0;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return false;
  if (device != asked &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess) {
    asked = device;
  }
  return device == asked && major >= 9;
}

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
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t how{};
  how.gridDim = dim3(shape.x, shape.y);
  how.blockDim = dim3(Body::threads);
  how.dynamicSmemBytes = shared;
  how.stream = stream;
  how.attrs = &early;
  how.numAttrs = comes_early<Body>() && kernels_come_early() ? 1 : 0;
  return cudaLaunchKernelEx(&how, kernel<Body>, body);
}

}  // namespace lethe::device
