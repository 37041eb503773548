// A client that tells what it wipes, into the file that LETHE_TOLD names: for an audit, which then
// looks for those bytes where they should not be.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/base/wipe.hpp"

namespace {

int told() {
  static const int fd = [] {
    const char* name = std::getenv("LETHE_TOLD");
    return name ? ::open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  }();
  return fd;
}

/// Its length in two bytes, and the block, in one write: threads don't mix.
void tell(const void* at, uint16_t size) {
  unsigned char record[2 + 256] = {static_cast<unsigned char>(size & 255),
                                   static_cast<unsigned char>(size >> 8)};
  std::memcpy(record + 2, at, size);
  (void)!::write(told(), record, 2 + size_t(size));
}

}  // namespace

void lethe::wipe(void* at, size_t bytes) noexcept {
  // Keys and what they are derived from; more is content, which is looked for by itself.
  if (bytes >= 16 && bytes <= 256 && told() >= 0) tell(at, uint16_t(bytes));
  if (bytes > 0) ::explicit_bzero(at, bytes);
}
