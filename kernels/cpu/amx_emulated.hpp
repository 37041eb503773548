#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lethe {

/// What registers of tiles hold in a thread, in the emulation.
struct emulated_tiles {
  uint32_t rows;  // of x and of sums; 0: no shape
  int8_t x[2][16][32];
  int8_t weights[2][8][64];
  int32_t sums[4][16][16];
};
extern thread_local emulated_tiles tiles_of_thread;
/// Products since the thread began.
extern thread_local size_t products_in_tiles;

}  // namespace lethe
