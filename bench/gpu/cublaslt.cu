#include "bench/gpu/cublaslt.hpp"

#ifdef LETHE_CUBLASLT
#include <cublasLt.h>
#include <dlfcn.h>

#include <string>

namespace lethe {

namespace {

constexpr size_t workspace_bytes = size_t{32} << 20;

/// Opened when first asked for: where it is not, the bench is one without this peer.
class library {
 public:
  library()
      : file_(dlopen(("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)).c_str(), RTLD_NOW)) {
    if (!file_) return;
    found_ = find(create, "cublasLtCreate") && find(destroy, "cublasLtDestroy") &&
             find(multiply, "cublasLtMatmul") && find(choose, "cublasLtMatmulAlgoGetHeuristic") &&
             find(make_what, "cublasLtMatmulDescCreate") &&
             find(set_what, "cublasLtMatmulDescSetAttribute") &&
             find(end_what, "cublasLtMatmulDescDestroy") &&
             find(make_layout, "cublasLtMatrixLayoutCreate") &&
             find(end_layout, "cublasLtMatrixLayoutDestroy") &&
             find(make_wish, "cublasLtMatmulPreferenceCreate") &&
             find(set_wish, "cublasLtMatmulPreferenceSetAttribute") &&
             find(end_wish, "cublasLtMatmulPreferenceDestroy");
  }
  /// Null where there is none.
  static const library* get() {
    static const library one;
    return one.found_ ? &one : nullptr;
  }

  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose = nullptr;
  decltype(&cublasLtMatmulDescCreate) make_what = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_what = nullptr;
  decltype(&cublasLtMatmulDescDestroy) end_what = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) make_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) end_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) make_wish = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_wish = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) end_wish = nullptr;

 private:
  template <class F>
  bool find(F& call, const char* name) {
    call = reinterpret_cast<F>(dlsym(file_, name));
    return call != nullptr;
  }

  void* file_;
  bool found_ = false;
};

bool good(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }

/// To cuBLASLt matrices are columns: y is [n][m], w is [k][n] transposed, x is [k][m].
class product final : public cublaslt_product {
 public:
  explicit product(const library& calls) : calls_(calls) {}
  ~product() override {
    cudaFree(workspace_);
    if (y_) calls_.end_layout(y_);
    if (x_) calls_.end_layout(x_);
    if (w_) calls_.end_layout(w_);
    if (what_) calls_.end_what(what_);
    if (handle_) calls_.destroy(handle_);
  }
  bool open(uint32_t n, uint32_t k, uint32_t m) {
    const cublasOperation_t transposed = CUBLAS_OP_T;
    return good(calls_.create(&handle_)) &&
           cudaMalloc(&workspace_, workspace_bytes) == cudaSuccess &&
           good(calls_.make_what(&what_, CUBLAS_COMPUTE_32F, CUDA_R_32F)) &&
           good(calls_.set_what(what_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                sizeof transposed)) &&
           good(calls_.make_layout(&w_, CUDA_R_16BF, k, n, k)) &&
           good(calls_.make_layout(&x_, CUDA_R_16BF, k, m, k)) &&
           good(calls_.make_layout(&y_, CUDA_R_32F, n, m, n)) && choose();
  }
  int multiply(const void* w, const void* x, float* y, cudaStream_t stream) override {
    const float one = 1, none = 0;
    return calls_.multiply(handle_, what_, &one, w, w_, x, x_, &none, y, y_, y, y_, &choice_.algo,
                           workspace_, workspace_bytes, stream);
  }

 private:
  bool choose() {
    cublasLtMatmulPreference_t wish = nullptr;
    int found = 0;
    bool chosen = good(calls_.make_wish(&wish)) &&
                  good(calls_.set_wish(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                       &workspace_bytes, sizeof workspace_bytes)) &&
                  good(calls_.choose(handle_, what_, w_, x_, y_, y_, wish, 1, &choice_, &found));
    if (wish) calls_.end_wish(wish);
    return chosen && found == 1;
  }

  const library& calls_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t what_ = nullptr;
  cublasLtMatrixLayout_t w_ = nullptr, x_ = nullptr, y_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_{};
  void* workspace_ = nullptr;
};

}  // namespace

std::unique_ptr<cublaslt_product> open_cublaslt(uint32_t n, uint32_t k, uint32_t m) {
  const library* calls = library::get();
  if (!calls) return nullptr;
  auto made = std::make_unique<product>(*calls);
  if (!made->open(n, k, m)) return nullptr;
  return made;
}

}  // namespace lethe

#else

namespace lethe {
std::unique_ptr<cublaslt_product> open_cublaslt(uint32_t, uint32_t, uint32_t) { return nullptr; }
}  // namespace lethe

#endif
