#include "runtime/api/api_error.hpp"

#include "runtime/json/json_text.hpp"

namespace lethe {

std::string to_json(const api_error& e) {
  json_text out(std::pmr::get_default_resource());
  out.open('{').key("error").open('{');
  out.key("message").text(e.message).key("type").text(e.type).key("param");
  e.param.empty() ? out.null() : out.text(e.param);
  out.key("code");
  e.code ? out.text(e.code) : out.null();
  out.close('}').close('}');
  return std::string(out.str());
}

}  // namespace lethe
