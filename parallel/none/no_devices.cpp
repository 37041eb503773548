#include "parallel/devices.hpp"

namespace lethe {
namespace {

error not_built() {
  return fail("devices: this program was built without CUDA; build it where nvcc is installed");
}

class no_devices final : public devices {
 public:
  result<std::vector<device_facts>> all() override { return not_built(); }
  result<std::unique_ptr<accelerator>> open(uint32_t) override { return not_built(); }
  const cuda_row& row(arithmetic) override { std::abort(); }  // nobody has opened one
  result<void> close_environment(const nccl_pins&) override { return not_built(); }
  result<loaded_nccl> nccl() override { return not_built(); }
};

}  // namespace

std::unique_ptr<devices> devices_of_this_build() { return std::make_unique<no_devices>(); }

}  // namespace lethe
