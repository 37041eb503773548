#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lethe {

/// What registers of tiles hold in a thread, in the emulation.
struct emulated_tiles {
  uint32_t rows, numbers;  // of x; 0: no shape
  int8_t tile[8][16][64];
};
extern thread_local emulated_tiles tiles_of_thread;
/// Products since the thread began.
extern thread_local size_t products_in_tiles;

}  // namespace lethe
