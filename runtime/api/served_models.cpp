#include "runtime/api/served_models.hpp"

#include "runtime/json/json_text.hpp"

namespace lethe {

namespace {

void write(json_text& out, const served_model& m) {
  out.open('{').key("id").text(m.name).key("object").text("model");
  out.key("created").number(uint64_t{0}).key("owned_by").text("lethe");
  if (m.context) out.key("max_model_len").number(*m.context);
  out.close('}');
}

}  // namespace

std::string to_json(const served_model& m) {
  json_text out(std::pmr::get_default_resource());
  write(out, m);
  return std::string(out.str());
}

std::string to_json(std::span<const served_model> all) {
  json_text out(std::pmr::get_default_resource());
  out.open('{').key("object").text("list").key("data").open('[');
  for (const auto& m : all) write(out, m);
  out.close(']').close('}');
  return std::string(out.str());
}

}  // namespace lethe
