#include "runtime/http/web_origins.hpp"

#include <algorithm>

namespace lethe {

bool web_origins::allows(std::string_view origin) const {
  return !origin.empty() && std::ranges::find(allowed_, origin) != allowed_.end();
}

web_origins::fields web_origins::fields_for(const http_head& asked) const {
  if (allowed_.empty()) return {};
  fields said{{"Vary", "Origin"}};
  auto origin = asked.field("origin");
  if (allows(origin)) said.emplace_back("Access-Control-Allow-Origin", origin);
  return said;
}

std::optional<http_answer> web_origins::preflight(const http_head& asked, std::string_view method,
                                                  std::string_view request_fields) const {
  if (asked.method != "OPTIONS" || !allows(asked.field("origin")) ||
      asked.field("access-control-request-method") != method)
    return {};
  http_answer answer{.status = 204, .fields = fields_for(asked)};
  answer.fields.emplace_back("Access-Control-Allow-Methods", method);
  answer.fields.emplace_back("Access-Control-Allow-Headers", request_fields);
  answer.fields.emplace_back("Access-Control-Max-Age", "7200");  // no browser keeps it for longer
  return answer;
}

}  // namespace lethe
