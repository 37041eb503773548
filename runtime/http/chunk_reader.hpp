#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lethe {

/// Takes a body apart that comes in chunks (RFC 9112, section 7.1). Holds none of it.
/// Extensions and trailers are stepped over, within bounds.
class chunk_reader {
 public:
  enum class verdict { more, done, bad };
  struct step {
    verdict what = verdict::more;
    size_t consumed = 0;       // of the input; the rest comes again
    std::string_view payload;  // lies within what was consumed
  };
  /// One stretch: up to the next payload, the end of the body or of the input.
  step read(std::string_view input);
  uint64_t left() const { return left_; }  // of the chunk that has begun

 private:
  enum class place {
    size,
    extension,
    size_end,
    data,
    data_end,
    data_lf,
    trailer,
    trailer_end,
    last
  };
  verdict take(char c);
  verdict take_size(char c);
  verdict take_trailer(char c);

  place at_ = place::size;
  uint32_t digits_ = 0;
  uint32_t loose_ = 0;  // bytes of extensions and trailers
  bool line_empty_ = true;
  uint64_t left_ = 0;  // of the current chunk
};

}  // namespace lethe
