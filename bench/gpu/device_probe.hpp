#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace lethe {

/// Multiplications and additions a second with matrices: by tensor cores out of registers, and by
/// cuBLASLt of a large product, 0 where it is not to be had.
struct matrix_peaks {
  double bf16 = 0, int8 = 0, bf16_cublaslt = 0;
};

/// What the GPU that is here can do at best. Prints a line of JSON for each figure; a fault of the
/// device ends the program.
class device_probe {
 public:
  virtual ~device_probe() = default;
  virtual std::string name() const = 0;
  virtual size_t free_bytes() const = 0;
  /// Bytes read and written a second by a large copy.
  virtual double copy_bytes_per_s() = 0;
  virtual matrix_peaks peaks() = 0;
};

/// None: there is no GPU.
std::unique_ptr<device_probe> open_probe(const std::string& commit);

}  // namespace lethe
