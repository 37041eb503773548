#pragma once

/// Where things lie. Only places.cpp is compiled with a path of this machine in it, so that every
/// checkout can use what another one has compiled.
namespace lethe::places {

extern const char source[];     // the checkout
extern const char test_data[];  // tests/data
extern const char vectors[];    // published test data, unless LETHE_VECTORS says otherwise
extern const char kernel_objects[];
extern const char program[];           // lethe itself
extern const char emulated_program[];  // with devices where there are none
extern const char throwing_program[];
extern const char rank_program[];
extern const char keeping_rank_program[];  // gives no memory back, so that one sees what it was
extern const char unwiped_rank_program[];  // nor wipes any
extern const char disk_library[];
extern const char stuck_library[];

}  // namespace lethe::places
