#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lethe {

/// How an answer begins.
struct http_answer {
  int status = 200;
  std::string content_type = "application/json";
  std::optional<uint64_t> content_length;  // none: a stream, each piece sent as it comes
  std::vector<std::pair<std::string, std::string>> fields;  // Retry-After, Cache-Control, ...
};

/// How a client knows where the body ends (RFC 9112, section 6.3).
enum class body_frame { none, length, chunks, until_close };

body_frame frame_of(const http_answer& answer, bool old_client);

/// Nothing if the answer has no possible form: status, a field's name or value (a line end in one
/// would begin another answer), or a field that is not the program's to say.
std::optional<std::string> write_answer_head(const http_answer& answer, body_frame frame,
                                             bool close);

/// A whole answer to a request that the program never hears of; the connection closes after it.
/// `with_body`: not to HEAD.
std::string write_refusal(int status, bool with_body = true);

}  // namespace lethe
