#include "runtime/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace lethe {

void broken(std::source_location where) noexcept {
  std::fprintf(stderr, "lethe: broken invariant at %s:%u in %s\n", where.file_name(),
               unsigned(where.line()), where.function_name());
  std::abort();
}

}  // namespace lethe
