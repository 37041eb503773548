#pragma once

#include "kernels/cuda/attend_decode.inl"
#include "kernels/cuda/attend_prefill.inl"
#include "kernels/cuda/cuda_row.hpp"
#include "kernels/cuda/draw.inl"
#include "kernels/cuda/elementwise.inl"
#include "kernels/cuda/matmul_float.inl"
#include "kernels/cuda/matmul_int8_tile.inl"
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

inline product_place place_of(const device_matrix& w, const product_part& part, uint32_t rows,
                              float* y, size_t y_stride) {
  const matrix& of = w.of;
  size_t begin = panel_bytes_before(of, w.segment_begin);
  size_t end = panel_bytes_before(of, w.segment_end);
  return {reinterpret_cast<const uint8_t*>(of.panels),
          w.first_panel,
          (end - begin + 63) / 64 * 64,
          begin,
          of.cols,
          part,
          rows,
          y,
          y_stride};
}

template <class Device>
struct launchers {
  template <dtype T>
  static device_error multiply(const product_place& place, const activations& x,
                               device_stream stream) {
    if constexpr (is_float(T)) {
      if (x.rows == 1) return Device::launch(float_rows<T, 1>{place, x.f, x.stride}, stream);
      if (x.rows <= few_rows)
        return Device::launch(float_rows<T, few_rows>{place, x.f, x.stride}, stream);
      return Device::launch(float_tile<T>{place, x.f, x.stride}, stream);
    } else {
      const product_part& part = place.part;
      uint32_t begin = segment_begin(T, place.cols, part.segment_begin);
      uint32_t end = segment_begin(T, place.cols, part.segment_end);
      x_rows rows{x.q, end > begin ? (end - begin) / unit_columns : 0};
      if (x.rows == 1) return Device::launch(quant_rows<T, 1>{place, rows}, stream);
      if (x.rows <= few_rows) return Device::launch(quant_rows<T, few_rows>{place, rows}, stream);
      if (x.rows <= 8) return Device::launch(int8_rows<T, 8>{place, rows}, stream);
      if (x.rows <= 16) return Device::launch(int8_rows<T, 16>{place, rows}, stream);
      if (x.rows <= 64) return Device::launch(int8_rows<T, 32>{place, rows}, stream);
      return Device::launch(int8_tile<T>{place, rows}, stream);
    }
  }
  static device_error matmul(const device_matrix& w, const product_part& part, const activations& x,
                             float* y, size_t y_stride, device_stream stream) {
    product_place place = place_of(w, part, x.rows, y, y_stride);
    return for_type(w.of.type,
                    [&]<class Type>(Type) { return multiply<Type::value>(place, x, stream); });
  }
  static device_error quantize_rows(const float* x, size_t stride, uint32_t m, uint32_t cols,
                                    int8_t* q, float* scales, int16_t* sums, device_stream stream) {
    return Device::launch(quantize{x, stride, m, cols, q, scales, sums}, stream);
  }
  static device_error to_float(const matrix& w, const uint32_t* ids, uint32_t count, float* y,
                               size_t y_stride, device_stream stream) {
    return for_type(w.type, [&]<class Type>(Type) {
      return Device::launch(rows_to_float<Type::value>{reinterpret_cast<const uint8_t*>(w.panels),
                                                       w.cols, ids, count, y, y_stride},
                            stream);
    });
  }
  static device_error norm(const float* x, size_t x_stride, const float* gain, float* y,
                           size_t y_stride, uint32_t rows, uint32_t cols, float eps,
                           device_stream stream) {
    return Device::launch(rms_norm{x, x_stride, gain, y, y_stride, rows, cols, eps}, stream);
  }
  static device_error turn(float* x, size_t stride, uint32_t rows, uint32_t heads,
                           uint32_t head_dim, uint32_t rotary, const float* cosines,
                           const float* sines, device_stream stream) {
    return Device::launch(rope{x, stride, rows, heads, head_dim, rotary, cosines, sines}, stream);
  }
  static device_error store(const device_kv& kv, const token_run* runs, uint32_t run_count,
                            uint32_t tokens_max, uint32_t kv_heads, const float* k, const float* v,
                            size_t stride, device_stream stream) {
    return for_type(kv.type, [&]<class Type>(Type) {
      return Device::launch(
          kv_store<Type::value>{kv, runs, run_count, tokens_max, kv_heads, k, v, stride}, stream);
    });
  }
  static device_error attend(const device_attention& a, device_stream stream) {
    return for_type(a.kv.type, [&]<class Type>(Type) {
      if (a.tokens_max != 1) return Device::launch(prefill<Type::value>{a}, stream);
      device_error error = Device::launch(decode_scores<Type::value>{a}, stream);
      return error ? error : Device::launch(decode_values<Type::value>{a}, stream);
    });
  }
  static device_error silu(const float* gate, const float* up, float* y, size_t n,
                           device_stream stream) {
    return Device::launch(silu_multiply{gate, up, y, n}, stream);
  }
  static device_error add(const float* x, float* y, size_t n, device_stream stream) {
    return Device::launch(add_to_rows{x, y, 0, 1, n}, stream);
  }
  static device_error add_bias(const float* bias, float* y, size_t stride, uint32_t rows,
                               uint32_t cols, device_stream stream) {
    return Device::launch(add_to_rows{bias, y, stride, rows, cols}, stream);
  }
  static device_error sum_tree(const float* x, size_t stride, uint32_t count, float* y, size_t n,
                               device_stream stream) {
    return Device::launch(add_tree{x, stride, count, y, n}, stream);
  }
  static device_error whole_rows(const column_parts& from, float* y, device_stream stream) {
    return Device::launch(join_columns{from, y}, stream);
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
          .rope = on::turn,
          .kv_store = on::store,
          .attend = on::attend,
          .silu_multiply = on::silu,
          .add = on::add,
          .add_bias = on::add_bias,
          .add_tree = on::sum_tree,
          .join_columns = on::whole_rows,
          .draw = on::draw,
          .wipe = on::zero};
}

}  // namespace lethe::device
