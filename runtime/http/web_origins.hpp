#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/http/answer_head.hpp"
#include "runtime/http/request_head.hpp"

namespace lethe {

/// Web pages of other origins that may ask from a browser (CORS, the Fetch standard, section 3.2).
/// An origin is compared byte by byte with what the browser says; pages get no credentials, and
/// read no field of an answer but those that every page may.
class web_origins {
 public:
  using fields = std::vector<std::pair<std::string, std::string>>;

  web_origins() = default;
  explicit web_origins(std::vector<std::string> allowed) : allowed_(std::move(allowed)) {}

  /// What an answer to `asked` says for the browser's sake: nothing where no page is allowed.
  fields fields_for(const http_head& asked) const;
  /// The answer to a preflight of `method` with such request fields; nothing where it is none, or
  /// not that of an allowed page.
  std::optional<http_answer> preflight(const http_head& asked, std::string_view method,
                                       std::string_view request_fields) const;

 private:
  bool allows(std::string_view origin) const;

  std::vector<std::string> allowed_;
};

}  // namespace lethe
