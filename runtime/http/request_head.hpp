#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/http/http_limits.hpp"

namespace lethe {

struct http_field {
  std::string_view name, value;
};

/// A request's head (RFC 9112, sections 2 to 6). All texts are views into the bytes it was read
/// from.
struct http_head {
  std::string_view method, path, query;  // the query without its question mark
  std::pmr::vector<http_field> fields;
  bool old = false;         // HTTP/1.0: no chunks, no keep-alive
  bool keep_alive = false;  // as far as the client is concerned
  bool chunked = false;
  bool wants_continue = false;
  uint64_t content_length = 0;

  /// The first of that name, in any case of letters; empty when there is none.
  std::string_view field(std::string_view name) const;
};

/// A status that says what is wrong.
struct http_refusal {
  int status = 400;
};

/// How many bytes of `input` the head takes, with its empty line: nothing while it is not whole.
/// A refusal for a line end without carriage return and for a head that cannot fit.
std::variant<std::optional<size_t>, http_refusal> find_head_end(std::string_view input,
                                                                size_t head_bytes_max);

/// `text` is a whole head, with its empty line; any other is refused. Strict: two readers of one
/// request must not disagree about where it ends.
std::variant<http_head, http_refusal> read_head(std::string_view text, const http_limits& limits,
                                                std::pmr::memory_resource* memory);

bool is_token(std::string_view text);        // RFC 9110, section 5.6.2
bool is_field_value(std::string_view text);  // no control characters but tabs

}  // namespace lethe
