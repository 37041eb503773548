#include "tests/cuda/emulated_row.hpp"

#include "kernels/cuda/row.inl"

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

}  // namespace lethe
