#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"

namespace lethe::audit {

/// Beside a tap's recording: a line for each connection, "MICROSECONDS NUMBER from ADDRESS", and
/// for each part that passed, "MICROSECONDS NUMBER > BYTES" to the server, "<" from it. The
/// recording has those bytes in that order.
std::string index_of(const std::string& recording);

/// A line of that index.
struct tapped_part {
  enum class way : uint8_t { opened, asked, said };
  uint64_t at_us = 0, connection = 0;  // by the clock that only runs forward
  way where = way::opened;
  size_t bytes = 0;
  std::string address;  // of who opened it
};
result<std::vector<tapped_part>> parts_in(const std::string& recording);

using piece = std::array<unsigned char, 16>;

/// Every 16 bytes in a row that are no text: text is the same in every exchange of a protocol.
std::vector<piece> pieces_of(std::string_view bytes);
result<std::vector<piece>> pieces_in(const std::string& recording);
size_t in_common(const std::vector<piece>& a, const std::vector<piece>& b);

/// A request as it passed, and its answer's size.
struct tapped_exchange {
  uint64_t at_us = 0;
  std::string address;  // of who asked
  size_t asked_bytes = 0, said_bytes = 0;
  std::vector<piece> pieces;  // of the request
};

/// In the order in which they began.
result<std::vector<tapped_exchange>> exchanges_in(const std::string& recording);

/// Which of `earlier` an exchange is, tried in each way; null: none.
struct tap_guesses {
  const tapped_exchange *by_strings = nullptr, *by_time = nullptr, *by_length = nullptr,
                        *by_both = nullptr;
};
tap_guesses guess_from(const tapped_exchange& of, const std::vector<tapped_exchange>& earlier);

}  // namespace lethe::audit
