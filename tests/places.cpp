#include "tests/places.hpp"

namespace lethe::places {

extern const char source[] = LETHE_SOURCE_DIR;
extern const char test_data[] = LETHE_SOURCE_DIR "/tests/data";
extern const char vectors[] = LETHE_SOURCE_DIR "/../shared/vectors";
extern const char kernel_objects[] = LETHE_KERNEL_OBJECTS;
extern const char program[] = LETHE_PROGRAM;
extern const char emulated_program[] = LETHE_EMULATED_PROGRAM;
extern const char throwing_program[] = LETHE_THROWING_PROGRAM;
extern const char rank_program[] = LETHE_RANK_PROGRAM;
extern const char keeping_rank_program[] = LETHE_KEEPING_RANK_PROGRAM;
extern const char unwiped_rank_program[] = LETHE_UNWIPED_RANK_PROGRAM;
extern const char disk_library[] = LETHE_DISK_LIBRARY;
extern const char stuck_library[] = LETHE_STUCK_LIBRARY;

}  // namespace lethe::places
