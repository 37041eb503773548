#pragma once

#include <cstdint>
#include <memory>

namespace lethe {

/// The peer of products with bf16 weights: cuBLASLt's of its own choice for a shape, sums in fp32.
class cublaslt_product {
 public:
  virtual ~cublaslt_product() = default;
  /// y[m][n] = the sum over k of w[n][k] * x[m][k]; w and x are bf16, rows back to back.
  virtual int multiply(const void* w, const void* x, float* y, cudaStream_t stream) = 0;
};

/// None where this was built without cuBLASLt's header, where the library is not to be had, or
/// where it has nothing for the shape.
std::unique_ptr<cublaslt_product> open_cublaslt(uint32_t n, uint32_t k, uint32_t m);

}  // namespace lethe
