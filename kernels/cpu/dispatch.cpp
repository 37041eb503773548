#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "kernels/cpu_row.hpp"
#include "kernels/pairs_row.hpp"

namespace lethe {

extern const cpu_row reference, avx2, zen3, avxvnni, avx512, avx512vnni, zen4, amx;

namespace {

constexpr const cpu_row* rows[] = {&reference, &avx2,       &zen3, &avxvnni,
                                   &avx512,    &avx512vnni, &zen4, &amx};
/// Those with bits of their own.
constexpr const cpu_row* rounding_rows[] = {&avx512bf16, &zen4_bf16, &amx_tensor};

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

/// VNNI's products without AVX-512's registers.
bool has_avx_vnni() {
  constexpr unsigned avx_vnni = 1u << 4;  // of leaf 7.1's eax
  unsigned a, b, c, d;
  return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & avx_vnni) != 0;
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }

/// Linux saves tiles for processes that have asked for them, which this one does here.
bool has_amx() {
  constexpr unsigned tile = 1u << 24, int8 = 1u << 25;  // of leaf 7's edx
  constexpr long ask_for_state = 0x1023, tile_data = 18;
  unsigned a, b, c, d;
  static const bool granted = has_vnni() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
                              (d & tile) != 0 && (d & int8) != 0 &&
                              syscall(SYS_arch_prctl, ask_for_state, tile_data) == 0;
  return granted;
}

bool has_bf16() { return has_vnni() && __builtin_cpu_supports("avx512bf16"); }

bool has_amx_bf16() {
  constexpr unsigned bf16_tiles = 1u << 22;  // of leaf 7's edx
  unsigned a, b, c, d;
  return has_amx() && has_bf16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (d & bf16_tiles) != 0;
}

/// Zen 3 and Zen 4; what their rows do differently is not measured elsewhere.
bool is_family_19h() { return __builtin_cpu_is("amdfam19h"); }

}  // namespace

std::span<const cpu_row* const> cpu_rows() { return rows; }

// __builtin_cpu_supports also asks the operating system whether it saves the registers (XCR0).
bool runs_here(const cpu_row& row) {
  if (&row == &reference) return true;
  if (&row == &avx2) return has_avx2();
  if (&row == &zen3) return has_avx2() && is_family_19h();
  if (&row == &avxvnni) return has_avx_vnni();
  if (&row == &avx512) return has_avx512();
  if (&row == &avx512vnni) return has_vnni();
  if (&row == &zen4) return has_vnni() && is_family_19h();
  if (&row == &amx) return has_amx();
  if (&row == &avx512bf16) return has_bf16();
  if (&row == &zen4_bf16) return has_bf16() && is_family_19h();
  if (&row == &amx_tensor) return has_amx_bf16();
  return false;
}

const cpu_row& best_cpu_row() {
  const cpu_row* best = &reference;
  for (const cpu_row* row : rows) {
    if (runs_here(*row)) best = row;
  }
  return *best;
}

const cpu_row& pairs_row() { return runs_here(zen4_bf16) ? zen4_bf16 : avx512bf16; }

const char* instructions_of(const cpu_row& row) {
  return &row == &amx_tensor ? "tiles of bfloat16 (AMX)" : "pairs of bfloat16 (AVX512_BF16)";
}

const cpu_row* find_cpu_row(const char* name) {
  for (auto all : {cpu_rows(), std::span<const cpu_row* const>(rounding_rows)}) {
    for (const cpu_row* row : all) {
      if (std::strcmp(row->name, name) == 0) return row;
    }
  }
  return nullptr;
}

}  // namespace lethe
