#pragma once

#include <cstdio>
#include <initializer_list>
#include <vector>

#include "kernels/cpu_row.hpp"

namespace lethe {

extern const cpu_row vnni_emulated, amx_emulated, amx_tensor_emulated;

/// Whether emulations run here: they are made of AVX-512.
inline bool emulates_here() { return runs_here(*find_cpu_row("avx512")); }

/// The build's rows that run here, and `emulated` where there is AVX-512; says by name which this
/// machine lacks.
inline std::vector<const cpu_row*> rows_here(std::initializer_list<const cpu_row*> emulated) {
  std::vector<const cpu_row*> here;
  for (const cpu_row* row : cpu_rows()) {
    if (runs_here(*row))
      here.push_back(row);
    else
      std::printf("skipped: %s, this machine lacks it\n", row->name);
  }
  if (emulates_here()) here.insert(here.end(), emulated);
  return here;
}

/// The kernels of tensor arithmetic, which have bits of their own.
inline std::vector<const cpu_row*> tensor_rows_here() {
  std::vector<const cpu_row*> here;
  if (runs_here(amx_tensor))
    here.push_back(&amx_tensor);
  else
    std::printf("skipped: %s, this machine lacks it\n", amx_tensor.name);
  if (emulates_here()) here.push_back(&amx_tensor_emulated);
  return here;
}

}  // namespace lethe
