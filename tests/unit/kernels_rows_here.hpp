#pragma once

#include <cstdio>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/pairs_row.hpp"

namespace lethe {

extern const cpu_row avxvnni_emulated, vnni_emulated, amx_emulated, amx_tensor_emulated,
    pairs_emulated;

/// Whether emulations run here: they are made of AVX-512, but avxvnni_emulated, of AVX2.
inline bool emulates_here() { return runs_here(*find_cpu_row("avx512")); }

/// Those that run here; says by name which this machine lacks.
inline std::vector<const cpu_row*> running(std::span<const cpu_row* const> rows) {
  std::vector<const cpu_row*> here;
  for (const cpu_row* row : rows) {
    if (runs_here(*row))
      here.push_back(row);
    else
      std::printf("skipped: %s, this machine lacks it\n", row->name);
  }
  return here;
}

/// The build's rows that run here, avxvnni_emulated, and `emulated` where there is AVX-512.
inline std::vector<const cpu_row*> rows_here(std::initializer_list<const cpu_row*> emulated) {
  std::vector<const cpu_row*> here = running(cpu_rows());
  if (runs_here(*find_cpu_row("avx2"))) here.push_back(&avxvnni_emulated);
  if (emulates_here()) here.insert(here.end(), emulated);
  return here;
}

/// Arithmetics with bits of their own: AMX's tiles, or pairs of columns.
enum class rounding { tensor, pairs };
inline const char* name_of(rounding how) { return how == rounding::tensor ? "tensor" : "pairs"; }

/// Their kernels that run here, and emulated ones where there is AVX-512.
inline std::vector<const cpu_row*> rounding_rows_here(rounding how) {
  bool tiles = how == rounding::tensor;
  auto all = tiles ? std::vector{&amx_tensor} : std::vector{&avx512bf16, &zen4_bf16};
  std::vector<const cpu_row*> here = running(all);
  if (emulates_here()) here.push_back(tiles ? &amx_tensor_emulated : &pairs_emulated);
  return here;
}

/// `rows` and those of every arithmetic that rounds.
inline std::vector<const cpu_row*> with_rounding_rows(std::vector<const cpu_row*> rows) {
  for (rounding how : {rounding::tensor, rounding::pairs})
    for (const cpu_row* row : rounding_rows_here(how)) rows.push_back(row);
  return rows;
}

}  // namespace lethe
