#include "bench/gpu/cublaslt.hpp"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace lethe {

namespace {

constexpr size_t workspace_bytes = size_t{32} << 20;

/// To cuBLASLt matrices are columns: y is [n][m], w is [k][n] transposed, x is [k][m].
class product final : public cublaslt_product {
 public:
  ~product() override {
    cudaFree(workspace_);
    if (y_) cublasLtMatrixLayoutDestroy(y_);
    if (x_) cublasLtMatrixLayoutDestroy(x_);
    if (w_) cublasLtMatrixLayoutDestroy(w_);
    if (what_) cublasLtMatmulDescDestroy(what_);
    if (library_) cublasLtDestroy(library_);
  }
  bool open(uint32_t n, uint32_t k, uint32_t m) {
    const cublasOperation_t transposed = CUBLAS_OP_T;
    return cublasLtCreate(&library_) == CUBLAS_STATUS_SUCCESS &&
           cudaMalloc(&workspace_, workspace_bytes) == cudaSuccess &&
           cublasLtMatmulDescCreate(&what_, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasLtMatmulDescSetAttribute(what_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                          sizeof transposed) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutCreate(&w_, CUDA_R_16BF, k, n, k) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutCreate(&x_, CUDA_R_16BF, k, m, k) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutCreate(&y_, CUDA_R_32F, n, m, n) == CUBLAS_STATUS_SUCCESS &&
           choose();
  }
  int multiply(const void* w, const void* x, float* y, cudaStream_t stream) override {
    const float one = 1, none = 0;
    return cublasLtMatmul(library_, what_, &one, w, w_, x, x_, &none, y, y_, y, y_, &choice_.algo,
                          workspace_, workspace_bytes, stream);
  }

 private:
  bool choose() {
    cublasLtMatmulPreference_t wish = nullptr;
    int found = 0;
    bool good = cublasLtMatmulPreferenceCreate(&wish) == CUBLAS_STATUS_SUCCESS &&
                cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                     &workspace_bytes, sizeof workspace_bytes) ==
                    CUBLAS_STATUS_SUCCESS &&
                cublasLtMatmulAlgoGetHeuristic(library_, what_, w_, x_, y_, y_, wish, 1, &choice_,
                                               &found) == CUBLAS_STATUS_SUCCESS;
    if (wish) cublasLtMatmulPreferenceDestroy(wish);
    return good && found == 1;
  }

  cublasLtHandle_t library_ = nullptr;
  cublasLtMatmulDesc_t what_ = nullptr;
  cublasLtMatrixLayout_t w_ = nullptr, x_ = nullptr, y_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_{};
  void* workspace_ = nullptr;
};

}  // namespace

std::unique_ptr<cublaslt_product> open_cublaslt(uint32_t n, uint32_t k, uint32_t m) {
  auto made = std::make_unique<product>();
  if (!made->open(n, k, m)) return nullptr;
  return made;
}

}  // namespace lethe

#else

namespace lethe {
std::unique_ptr<cublaslt_product> open_cublaslt(uint32_t, uint32_t, uint32_t) { return nullptr; }
}  // namespace lethe

#endif
