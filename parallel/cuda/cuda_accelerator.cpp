#include "parallel/cuda/cuda_accelerator.hpp"

#include <cuda_runtime_api.h>

namespace lethe {
namespace {

class cuda_accelerator final : public accelerator {
 public:
  cuda_accelerator(int device, cudaStream_t stream) : device_(device), stream_(stream) {}
  ~cuda_accelerator() override { cudaStreamDestroy(stream_); }

  device_error use() override { return cudaSetDevice(device_); }

  std::byte* allocate(memory_kind kind, size_t bytes) override {
    void* at = nullptr;
    cudaError_t error = kind == memory_kind::device
                            ? cudaMalloc(&at, bytes)
                            : cudaHostAlloc(&at, bytes, cudaHostAllocDefault);
    if (error == cudaSuccess) return static_cast<std::byte*>(at);
    cudaGetLastError();  // or another call would report it
    return nullptr;
  }
  void free(memory_kind kind, std::byte* at, size_t) override {
    kind == memory_kind::device ? cudaFree(at) : cudaFreeHost(at);
  }

  device_stream stream() override { return stream_; }
  device_error copy(void* to, const void* from, size_t bytes) override {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_);
  }
  device_error copy_stretches(void* to, const void* from, size_t pitch, size_t bytes,
                              size_t count) override {
    return cudaMemcpy2DAsync(to, pitch, from, pitch, bytes, count, cudaMemcpyDefault, stream_);
  }

  /// Relaxed: the first launch of a kernel may have to load it.
  device_error begin_graph() override {
    return cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed);
  }
  device_error end_graph(device_graph& made) override {
    cudaGraph_t captured = nullptr;
    if (cudaError_t error = cudaStreamEndCapture(stream_, &captured)) return error;
    cudaError_t error = cudaGraphInstantiate(&made, captured, 0);
    cudaGraphDestroy(captured);
    return error;
  }
  device_error queue(device_graph graph) override { return cudaGraphLaunch(graph, stream_); }
  void free(device_graph graph) override { cudaGraphExecDestroy(graph); }

  device_error finish() override { return cudaStreamSynchronize(stream_); }
  device_error ask(bool& done) override {
    cudaError_t said = cudaStreamQuery(stream_);
    done = said != cudaErrorNotReady;
    if (done) return said;
    cudaGetLastError();  // or another call would report it
    return cudaSuccess;
  }

 private:
  const int device_;
  const cudaStream_t stream_;
};

}  // namespace

result<std::unique_ptr<accelerator>> open_cuda(int device) {
  cudaStream_t stream = nullptr;
  cudaError_t error = cudaSetDevice(device);
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error != cudaSuccess)
    return fail("shard: GPU {} cannot be used: {}", device, cudaGetErrorString(error));
  return std::unique_ptr<accelerator>(new cuda_accelerator(device, stream));
}

}  // namespace lethe
