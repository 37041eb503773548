#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/http/answer_head.hpp"

namespace lethe {

/// How an answer begins, as its client reads it.
struct http_reply {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> fields;
  body_frame frame = body_frame::none;
  uint64_t content_length = 0;
  bool keep_alive = false;

  /// The first of that name, in any case of letters; empty when there is none.
  std::string_view field(std::string_view name) const;
};

/// `text` is a whole head, with its empty line, of an answer to HEAD if `head_only`; any other is
/// refused. As strict as the server: a length that is said twice, or beside chunks, is refused.
/// Interim answers (1xx) have no frame.
result<http_reply> read_reply(std::string_view text, bool head_only, uint32_t fields_max);

}  // namespace lethe
