#pragma once

#include "kernels/cuda/attend_tensor.inl"
#include "kernels/cuda/matmul_tensor.inl"
#include "kernels/cuda/row.inl"

// The table of arithmetic by tensor cores: the exact one but for products and attention.

namespace lethe::device {

template <class Device>
struct tensor_launchers {
  template <dtype T>
  static device_error multiply(const product_place& p, const activations& x, device_stream stream) {
    if (x.rows <= 8) return Device::launch(tensor_products<T, 1, 1>{p, x.f, x.stride}, stream);
    if (x.rows <= 32) return Device::launch(tensor_products<T, 1, 4>{p, x.f, x.stride}, stream);
    return Device::launch(tensor_products<T, 4, 4>{p, x.f, x.stride}, stream);
  }
  static device_error matmul(const device_matrix& w, const product_part& part, const activations& x,
                             float* y, size_t y_stride, device_stream stream) {
    product_place place = place_of(w, part, x.rows, y, y_stride);
    if (w.of.type == dtype::bf16) return multiply<dtype::bf16>(place, x, stream);
    if (w.of.type == dtype::f16) return multiply<dtype::f16>(place, x, stream);
    return launchers<Device>::matmul(w, part, x, y, y_stride, stream);
  }
  static device_error attend(const device_attention& a, device_stream stream) {
    if (a.kv.head_dim > tensor_head_max) return launchers<Device>::attend(a, stream);
    return for_type(a.kv.type, [&]<class Type>(Type) {
      constexpr kv_type type = Type::value;
      if (a.tokens_max != 1) return Device::launch(tensor_attend<type, false>{a}, stream);
      device_error error = Device::launch(tensor_attend<type, true>{a}, stream);
      return error ? error : Device::launch(join_spans{a}, stream);
    });
  }
};

template <class Device>
constexpr cuda_row tensor_row_on(const char* name) {
  cuda_row row = row_on<Device>(name);
  row.arithmetic = arithmetic::tensor;
  row.matmul = tensor_launchers<Device>::matmul;
  row.attend = tensor_launchers<Device>::attend;
  return row;
}

}  // namespace lethe::device
