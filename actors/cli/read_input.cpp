#include "actors/cli/read_input.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/mapped_file.hpp"

namespace lethe {

namespace {

constexpr size_t input_bytes_max = size_t{64} << 20;

}  // namespace

result<std::string> read_input(const std::string& path) {
  if (path != "-") return read_text(path, input_bytes_max);
  std::string all;
  char part[65536];
  while (true) {
    ssize_t got = ::read(STDIN_FILENO, part, sizeof part);
    if (got == 0) return all;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail("standard input: cannot read: {}", std::strerror(errno));
    if (all.size() + size_t(got) > input_bytes_max)
      return fail("standard input: over {} bytes", input_bytes_max);
    all.append(part, size_t(got));
  }
}

}  // namespace lethe
