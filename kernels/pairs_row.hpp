#pragma once

#include "kernels/cpu_row.hpp"

namespace lethe {

/// The kernels of the declared arithmetic "pairs": avx512vnni and zen4, but that products with bf16
/// weights and attention over bf16 keys and values round what they multiply to bfloat16, two
/// columns at once. A sum has one order here, too (docs/decisions/0063-pairs-of-bf16.md).
extern const cpu_row avx512bf16, zen4_bf16;

/// The one for this machine; if it runs none, one that runs_here denies.
const cpu_row& pairs_row();

/// What a processor must have for a row with bits of its own, as a sentence says it.
const char* instructions_of(const cpu_row& row);

}  // namespace lethe
