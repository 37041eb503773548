#pragma once

#include <xmmintrin.h>

namespace lethe {
namespace {

/// Denormal floats of this thread's vectors are zeros, read and written, as those of tiles are.
class denormals_are_zeros {
 public:
  denormals_are_zeros() { _mm_setcsr(before_ | read_as_zeros | written_as_zeros); }
  ~denormals_are_zeros() { _mm_setcsr(before_); }
  denormals_are_zeros(const denormals_are_zeros&) = delete;
  denormals_are_zeros& operator=(const denormals_are_zeros&) = delete;

 private:
  static constexpr unsigned read_as_zeros = 0x40, written_as_zeros = 0x8000;
  const unsigned before_ = _mm_getcsr();
};

}  // namespace
}  // namespace lethe
