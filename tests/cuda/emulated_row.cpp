#include "tests/cuda/emulated_row.hpp"

#include "kernels/cuda/row_tensor.inl"

namespace lethe {
namespace {

struct on_a_machine {
  template <class Body>
  static device_error launch(const Body& body, device_stream stream) {
    return emulated::machine::of(stream).launch(body);
  }
};

}  // namespace

const cuda_row emulated_row = device::row_on<on_a_machine>("emulated");
const cuda_row emulated_tensor_row = device::tensor_row_on<on_a_machine>("emulated_tensor");

}  // namespace lethe
