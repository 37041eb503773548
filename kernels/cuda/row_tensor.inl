#pragma once

#include "kernels/cuda/attend_tensor.inl"
#include "kernels/cuda/attend_tensor_walk.inl"
#include "kernels/cuda/matmul_tensor_tile.inl"
#include "kernels/cuda/row.inl"

// The table of arithmetic by tensor cores: the exact one but for products and attention.

namespace lethe::device {

template <class Device>
struct tensor_launchers {
  template <dtype T>
  static device_error multiply(std::span<const device_product> all, const activations& x,
                               device_stream stream) {
    auto on = [&]<class Body>() {
      return [&x](const product_place& p) { return Body{p, x.f, x.stride}; };
    };
    auto run = [&](auto make) { return launch_together<Device>(all, x.rows, make, stream); };
    if (x.rows <= 8) return run(on.template operator()<tensor_products<T, 1, 1>>());
    if (x.rows <= 32) return run(on.template operator()<tensor_products<T, 1, 4>>());
    if (x.rows <= 128) return run(on.template operator()<tensor_products<T, 4, 4>>());
    return run(on.template operator()<tensor_tile<T>>());
  }
  static device_error matmul(std::span<const device_product> all, const activations& x,
                             device_stream stream) {
    return for_each_type(all, [&](std::span<const device_product> some) {
      dtype type = some[0].w.of.type;
      if (type == dtype::bf16) return multiply<dtype::bf16>(some, x, stream);
      if (type == dtype::f16) return multiply<dtype::f16>(some, x, stream);
      return launchers<Device>::matmul(some, x, stream);
    });
  }
  template <kv_type K>
  static device_error attend_to_prompts(const device_attention& a, device_stream stream) {
    if (a.kv.head_dim <= 64) return Device::launch(tensor_walk<K, 2>{a}, stream);
    if (a.kv.head_dim <= 128) return Device::launch(tensor_walk<K, 4>{a}, stream);
    return Device::launch(tensor_attend<K, false>{a}, stream);
  }
  static device_error attend(const device_attention& a, device_stream stream) {
    if (a.kv.head_dim > tensor_head_max) return launchers<Device>::attend(a, stream);
    return for_type(a.kv.type, [&]<class Type>(Type) {
      constexpr kv_type type = Type::value;
      if (a.tokens_max != 1) return attend_to_prompts<type>(a, stream);
      device_error error = Device::launch(tensor_attend<type, true>{a}, stream);
      return error ? error : Device::launch(join_spans{a, a.scratch}, stream);
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
