#pragma once

#include <optional>
#include <variant>

#include "runtime/bhttp/request.hpp"
#include "runtime/token/private_token.hpp"
#include "runtime/token/token_request.hpp"

/// What stands inside the outer layer (docs/PROTOCOL.md, section 6a).
namespace lethe {

/// What a refusal says of the token that came along.
enum class change_word : uint8_t { absent, due, none };

/// A refusal, as its client reads it inside. It holds nothing of the request.
struct inner_problem {
  uint32_t status = 400;
  const char* title = "";
  change_word change = change_word::absent;
  std::string challenge;  // of a 401
  std::string refusal;    // the node's, base64url
  uint32_t retry_after_s = 0;
};

/// The log, a roster or the issuer's directory.
struct inner_look {
  std::string_view path;  // without its slash
};

/// A sealed request and what it is paid with.
struct inner_sealed {
  private_token token;
  token_request change;
  bytes_view message;
};

/// A claim for change.
struct inner_claim {
  private_token token;
  token_request change;
  bytes_view bytes;  // both, as the issuer wants them
};

using inner_request = std::variant<inner_look, inner_sealed, inner_claim, inner_problem>;

/// Sorts a request; views stay in it.
inner_request read_inner(const bhttp_request_view& request);

}  // namespace lethe
