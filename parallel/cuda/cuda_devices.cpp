#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "parallel/cuda/cuda_accelerator.hpp"
#include "parallel/devices.hpp"

namespace lethe {
namespace {

error unusable(const char* what, cudaError_t error) {
  return fail("devices: {}: {}; nvidia-smi may know more", what, cudaGetErrorString(error));
}

std::string text_of(const cudaUUID_t& id) {
  std::string text;
  for (char byte : id.bytes) text += fmt::format("{:02x}", uint8_t(byte));
  return text;
}

class cuda_devices final : public devices {
 public:
  /// Makes no context: what holds memory on a device is its rank's process alone.
  result<std::vector<device_facts>> all() override {
    int count = 0;
    if (cudaError_t error = cudaGetDeviceCount(&count)) return unusable("CUDA finds no GPU", error);
    std::vector<device_facts> found;
    for (int i = 0; i < count; ++i) {
      cudaDeviceProp p;
      if (cudaError_t error = cudaGetDeviceProperties(&p, i)) return unusable("a GPU", error);
      found.push_back({.model = p.name, .id = text_of(p.uuid), .memory = p.totalGlobalMem});
    }
    return found;
  }
  result<std::unique_ptr<accelerator>> open(uint32_t number) override {
    return open_cuda(int(number));
  }
  const cuda_row& row(arithmetic how) override {
    return how == arithmetic::tensor ? cuda_tensor : cuda;
  }
  result<void> close_environment(const nccl_pins& pins) override {
    pins_ = pins;
    return close_nccl_environment(pins);
  }
  result<loaded_nccl> nccl() override {
    auto functions = load_nccl();
    if (!functions) return functions.why();
    return loaded_nccl{*functions, pins_};
  }

 private:
  nccl_pins pins_;
};

}  // namespace

std::unique_ptr<devices> devices_of_this_build() { return std::make_unique<cuda_devices>(); }

}  // namespace lethe
