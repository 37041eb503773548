#include "parallel/devices.hpp"

#include <cstdlib>

#include "tests/cuda/emulated_device.hpp"
#include "tests/cuda/emulated_row.hpp"
#include "tests/cuda/nccl_over_sockets.hpp"

// The program's devices where there are none: this machine, emulated.

namespace lethe {
namespace {

/// Each test has devices of its own: its clusters' control sockets lie in a folder of its own.
std::string id_of(int number) {
  const char* folder = std::getenv("XDG_RUNTIME_DIR");
  return fmt::format("emulated {} {}", number, folder == nullptr ? "" : folder);
}

class emulated_devices final : public devices {
 public:
  result<std::vector<device_facts>> all() override {
    std::vector<device_facts> found;
    for (int i = 0; i < 4; ++i)
      found.push_back({.model = "emulated", .id = id_of(i), .memory = uint64_t{4} << 30});
    return found;
  }
  result<std::unique_ptr<accelerator>> open(uint32_t) override {
    return std::unique_ptr<accelerator>(new emulated::device);
  }
  const cuda_row& row(arithmetic how) override {
    return how == arithmetic::tensor ? emulated_tensor_row : emulated_row;
  }
  result<void> close_environment(const nccl_pins& pins) override {
    pins_ = pins;
    return close_nccl_environment(pins, "/nonexistent/nccl.conf");  // nobody here reads it
  }
  result<loaded_nccl> nccl() override { return loaded_nccl{emulated::nccl_over_sockets(), pins_}; }

 private:
  nccl_pins pins_;
};

}  // namespace

std::unique_ptr<devices> devices_of_this_build() { return std::make_unique<emulated_devices>(); }

}  // namespace lethe
