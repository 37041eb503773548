#pragma once

#include "kernels/cuda/cuda_row.hpp"
#include "kernels/cuda/simt.hpp"

namespace lethe::device {

extern __shared__ four_words shared_words[];

/// simt.hpp's block, on the device.
struct device_block {
  __device__ uint32_t x() const { return blockIdx.x; }
  __device__ uint32_t y() const { return blockIdx.y; }
  __device__ uint32_t thread() const { return threadIdx.x; }
  __device__ void barrier() { __syncthreads(); }
  template <class T>
  __device__ T shuffle_xor(T v, uint32_t mask) {
    return __shfl_xor_sync(0xffffffff, v, int(mask));
  }
  __device__ uint32_t get_word(uint32_t i) const { return words()[i]; }
  __device__ void put_word(uint32_t i, uint32_t v) { words()[i] = v; }
  __device__ float get(uint32_t i) const { return __uint_as_float(words()[i]); }
  __device__ void put(uint32_t i, float v) { words()[i] = __float_as_uint(v); }
  __device__ four_words get_four(uint32_t i) const { return shared_words[i / 4]; }

 private:
  __device__ static uint32_t* words() { return reinterpret_cast<uint32_t*>(shared_words); }
};

template <class Body>
__global__ void __launch_bounds__(Body::threads) kernel(const __grid_constant__ Body body) {
  device_block block;
  body(block);
}

/// Each body is instantiated in one .cu file; the table (row.cu) only names it.
struct gpu {
  template <class Body>
  static device_error launch(const Body& body, device_stream stream);
};

}  // namespace lethe::device
