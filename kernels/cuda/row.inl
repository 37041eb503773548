#pragma once

#include "kernels/cuda/attend_decode.inl"
#include "kernels/cuda/attend_prefill.inl"
#include "kernels/cuda/cuda_row.hpp"
#include "kernels/cuda/draw.inl"
#include "kernels/cuda/elementwise.inl"
#include "kernels/cuda/matmul_float.inl"
#include "kernels/cuda/matmul_int8_tile.inl"
#include "kernels/cuda/matmul_together.inl"
#include "kernels/cuda/place_heads.inl"
#include "kernels/cuda/quantize.inl"
#include "kernels/cuda/ranks.inl"
#include "kernels/cuda/rms_norm.inl"
#include "kernels/cuda/rows_to_float.inl"

// The table of launchers, once for whatever runs a body: Device::launch(body, stream).

namespace lethe::device {

template <dtype T>
struct weight_type {
  static constexpr dtype value = T;
};
template <kv_type K>
struct stored_type {
  static constexpr kv_type value = K;
};

/// f(weight_type<T>) for the T that t is.
template <class F>
device_error for_type(dtype t, F f) {
  switch (t) {
    case dtype::f32:
      return f(weight_type<dtype::f32>{});
    case dtype::f16:
      return f(weight_type<dtype::f16>{});
    case dtype::bf16:
      return f(weight_type<dtype::bf16>{});
    case dtype::q8_0:
      return f(weight_type<dtype::q8_0>{});
    case dtype::q4_0:
      return f(weight_type<dtype::q4_0>{});
    case dtype::q4_1:
      return f(weight_type<dtype::q4_1>{});
    case dtype::q5_0:
      return f(weight_type<dtype::q5_0>{});
    case dtype::q5_1:
      return f(weight_type<dtype::q5_1>{});
    case dtype::q4_k:
      return f(weight_type<dtype::q4_k>{});
    case dtype::q5_k:
      return f(weight_type<dtype::q5_k>{});
    default:
      return f(weight_type<dtype::q6_k>{});
  }
}
template <class F>
device_error for_type(kv_type k, F f) {
  if (k == kv_type::f32) return f(stored_type<kv_type::f32>{});
  if (k == kv_type::bf16) return f(stored_type<kv_type::bf16>{});
  return f(stored_type<kv_type::int8>{});
}

inline product_place place_of(const device_product& p, uint32_t rows) {
  const matrix& of = p.w.of;
  size_t begin = panel_bytes_before(of, p.w.segment_begin);
  size_t end = panel_bytes_before(of, p.w.segment_end);
  return {reinterpret_cast<const uint8_t*>(of.panels),
          p.w.first_panel,
          (end - begin + 63) / 64 * 64,
          begin,
          of.cols,
          p.part,
          rows,
          p.to};
}

/// In one kernel. make(product_place) is what runs.
template <class Device, class Make>
device_error launch_together(std::span<const device_product> all, uint32_t rows, Make make,
                             device_stream stream) {
  products<decltype(make(product_place{}))> in_one;
  for (const device_product& p : all) in_one.add(make(place_of(p, rows)));
  return Device::launch(in_one, stream);
}
/// A kernel each.
template <class Device, class Make>
device_error launch_each(std::span<const device_product> all, uint32_t rows, Make make,
                         device_stream stream) {
  device_error error = 0;
  for (const device_product& p : all) {
    if (error == 0) error = Device::launch(make(place_of(p, rows)), stream);
  }
  return error;
}

/// f(products) of those of one type that follow each other, as many as go together.
template <class F>
device_error for_each_type(std::span<const device_product> all, F f) {
  device_error error = 0;
  while (error == 0 && !all.empty()) {
    size_t n = 1, most = all.size() < products_together ? all.size() : products_together;
    while (n < most && all[n].w.of.type == all[0].w.of.type) n++;
    error = f(all.first(n));
    all = all.subspan(n);
  }
  return error;
}

template <class Device>
struct launchers {
  template <dtype T>
  static device_error multiply(std::span<const device_product> all, const activations& x,
                               device_stream stream) {
    auto run = [&](auto make) { return launch_together<Device>(all, x.rows, make, stream); };
    if constexpr (is_float(T)) {
      auto on = [&]<class Body>() {
        return [&x](const product_place& p) { return Body{p, x.f, x.stride}; };
      };
      if (x.rows == 1) return run(on.template operator()<float_rows<T, 1>>());
      if (x.rows <= few_rows) return run(on.template operator()<float_rows<T, few_rows>>());
      return run(on.template operator()<float_tile<T>>());
    } else {
      auto on = [&]<class Body>() {
        return [&x](const product_place& p) { return Body{p, quantized_of<T>(p, x)}; };
      };
      if (x.rows == 1) return run(on.template operator()<quant_rows<T, 1>>());
      if (x.rows <= few_rows) return run(on.template operator()<quant_rows<T, few_rows>>());
      if (x.rows <= 8) return run(on.template operator()<int8_rows<T, 8>>());
      if (x.rows <= 16) return run(on.template operator()<int8_rows<T, 16>>());
      if (x.rows <= quantized_together) return run(on.template operator()<int8_rows<T, 32>>());
      return launch_each<Device>(all, x.rows, on.template operator()<int8_tile<T>>(), stream);
    }
  }
  template <dtype T>
  static x_rows quantized_of(const product_place& p, const activations& x) {
    uint32_t begin = segment_begin(T, p.cols, p.part.segment_begin);
    uint32_t end = segment_begin(T, p.cols, p.part.segment_end);
    return {x.q, end > begin ? (end - begin) / unit_columns : 0};
  }
  static device_error matmul(std::span<const device_product> all, const activations& x,
                             device_stream stream) {
    return for_each_type(all, [&](std::span<const device_product> some) {
      return for_type(some[0].w.of.type,
                      [&]<class Type>(Type) { return multiply<Type::value>(some, x, stream); });
    });
  }
  static device_error quantize_rows(const float* x, size_t stride, uint32_t rows, uint32_t cols,
                                    const device_activations& to, device_stream stream) {
    return Device::launch(quantize{x, stride, rows, cols, to}, stream);
  }
  static device_error to_float(const matrix& w, const uint32_t* ids, uint32_t count, float* y,
                               size_t y_stride, device_stream stream) {
    return for_type(w.type, [&]<class Type>(Type) {
      return Device::launch(rows_to_float<Type::value>{reinterpret_cast<const uint8_t*>(w.panels),
                                                       w.cols, ids, count, y, y_stride},
                            stream);
    });
  }
  static device_error norm(const float* x, size_t x_stride, const float* gain,
                           const device_activations& to, uint32_t rows, uint32_t cols, float eps,
                           device_stream stream) {
    return Device::launch(rms_norm{x, x_stride, gain, to, rows, cols, eps}, stream);
  }
  static device_error place(const device_heads& h, device_stream stream) {
    return for_type(h.kv.type, [&]<class Type>(Type) {
      return Device::launch(place_heads<Type::value>{h}, stream);
    });
  }
  static device_error attend(const device_attention& a, device_stream stream) {
    return for_type(a.kv.type, [&]<class Type>(Type) {
      if (a.tokens_max != 1) return Device::launch(prefill<Type::value>{a}, stream);
      float* spans = a.scratch + size_t{a.run_count} * a.heads * a.tiles_max * attention_tile;
      device_error error = Device::launch(decode_scores<Type::value>{a}, stream);
      if (!error) error = Device::launch(decode_values<Type::value>{a, spans}, stream);
      return error ? error : Device::launch(join_spans{a, spans}, stream);
    });
  }
  static device_error silu(const float* gate, const float* up, const device_activations& to,
                           size_t n, device_stream stream) {
    return Device::launch(silu_multiply{gate, up, to, n}, stream);
  }
  static device_error sum_tree(const float* x, size_t stride, uint32_t count,
                               const device_output& to, uint32_t rows, uint32_t cols,
                               device_stream stream) {
    return Device::launch(add_tree{x, stride, count, to, rows, cols}, stream);
  }
  static device_error whole_rows(const column_parts& from, const device_output& to,
                                 device_stream stream) {
    return Device::launch(join_columns{from, to}, stream);
  }
  static device_error draw(const device_draws& d, device_stream stream) {
    return Device::launch(draw_rows{d}, stream);
  }
  static device_error zero(std::byte* begin, size_t bytes, device_stream stream) {
    return Device::launch(wipe{reinterpret_cast<four_words*>(begin), bytes / sizeof(four_words)},
                          stream);
  }
};

template <class Device>
constexpr cuda_row row_on(const char* name) {
  using on = launchers<Device>;
  return {.name = name,
          .arithmetic = arithmetic::exact,
          .matmul = on::matmul,
          .quantize = on::quantize_rows,
          .rows_to_float = on::to_float,
          .rms_norm = on::norm,
          .place_heads = on::place,
          .attend = on::attend,
          .silu_multiply = on::silu,
          .add_tree = on::sum_tree,
          .join_columns = on::whole_rows,
          .draw = on::draw,
          .wipe = on::zero};
}

}  // namespace lethe::device
