#pragma once

#include "kernels/cuda/cuda_row.hpp"
#include "kernels/cuda/simt.hpp"

namespace lethe::device {

/// c + a * b by the warp's tensor cores.
template <product_type T>
__device__ product_sums<T> tensor_product(const product_rows<T>& rows,
                                          const product_columns<T>& columns,
                                          const product_sums<T>& sums) {
  const auto& a = rows.a;
  const auto& b = columns.b;
  const auto& c = sums.c;
  product_sums<T> to;
  auto& d = to.c;
  if constexpr (T == product_type::s8) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]),
          "r"(c[2]), "r"(c[3]));
  } else if constexpr (T == product_type::s8_half) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%7,%8,%9,%10};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
  } else if constexpr (T == product_type::bf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
          "f"(c[2]), "f"(c[3]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
          "f"(c[2]), "f"(c[3]));
  }
  return to;
}

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
  template <product_type T>
  __device__ product_sums<T> multiply(const product_rows<T>& a, const product_columns<T>& b,
                                      product_sums<T> c) {
    return tensor_product<T>(a, b, c);
  }
  __device__ uint32_t get_word(uint32_t i) const { return words()[i]; }
  __device__ void put_word(uint32_t i, uint32_t v) { words()[i] = v; }
  __device__ float get(uint32_t i) const { return __uint_as_float(words()[i]); }
  __device__ void put(uint32_t i, float v) { words()[i] = __float_as_uint(v); }
  __device__ two_words get_two(uint32_t i) const {
    return reinterpret_cast<two_words*>(shared_words)[i / 2];
  }
  __device__ four_words get_four(uint32_t i) const { return shared_words[i / 4]; }
  /// Past the first cache, which has no use for what is in shared words.
  __device__ void copy_four(uint32_t i, const void* from) {
    uint32_t to = uint32_t(__cvta_generic_to_shared(shared_words + i / 4));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  }
  __device__ void copy_word(uint32_t i, const void* from) {
    uint32_t to = uint32_t(__cvta_generic_to_shared(words() + i));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
  }
  __device__ void copies_asked() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  template <uint32_t but>
  __device__ void copies_there() {
    asm volatile("cp.async.wait_group %0;" ::"n"(but) : "memory");
  }

 private:
  __device__ static uint32_t* words() { return reinterpret_cast<uint32_t*>(shared_words); }
};

/// Blocks of the next kernel may come as soon as there is room for them and all of this one's have
/// begun; they wait for its end, and so do those behind them.
template <class Body>
__global__ void __launch_bounds__(Body::threads, blocks_side_by_side<Body>())
    kernel(const __grid_constant__ Body body) {
  device_block block;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  body(block);
}

/// Each body is instantiated in one .cu file; the table (row.cu) only names it.
struct gpu {
  template <class Body>
  static device_error launch(const Body& body, device_stream stream);
};

}  // namespace lethe::device
