#include "runtime/crypto/shape_text.hpp"

#include <fmt/format.h>

namespace lethe {

std::string text_of(const answer_shape& s) {
  if (!s.sized()) return "answers are not shaped: the network sees their lengths and times";
  auto when =
      s.ticks() ? fmt::format("one every {} ms", s.tick_ms) : "when there is something to say";
  return fmt::format("answers in chunks of {} bytes, {}; a power of two of them", s.chunk_bytes,
                     when);
}

}  // namespace lethe
