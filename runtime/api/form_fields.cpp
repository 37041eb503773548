#include "runtime/api/read_fields.hpp"

namespace lethe {

namespace {

/// A request has one form. The same one said twice is refused, too: which counts would be a guess.
api_refusal take_form(api_ask& a, answer_form form, const char* param,
                      std::optional<json_slice> value = {}) {
  if (a.form != answer_form::text)
    return wrong_param(param, "{} and {} are given; only one form at once", a.form_param, param);
  a.form = form;
  a.form_param = param;
  a.form_value = value;
  return {};
}

api_refusal response_format(api_ask& a, json_slice v) {
  if (v.is(json_kind::null)) return {};
  auto type = v.find("type");
  if (!type || !type->is(json_kind::text))
    return wrong_param("response_format", "response_format must be an object with a type");
  if (type->says("text")) return {};
  if (type->says("json_object")) return take_form(a, answer_form::json_object, "response_format");
  if (!type->says("json_schema"))
    return wrong_param("response_format.type",
                       "response_format.type must be text, json_object or json_schema");
  auto wrapper = v.find("json_schema");
  auto schema = wrapper ? wrapper->find("schema") : std::nullopt;
  if (!schema || !schema->is(json_kind::object))
    return wrong_param("response_format.json_schema",
                       "response_format.json_schema must hold a schema");
  return take_form(a, answer_form::json_schema, "response_format.json_schema.schema", schema);
}

api_refusal schema(api_ask& a, json_slice v, const char* param) {
  if (v.is(json_kind::null)) return {};
  if (!v.is(json_kind::object) && !v.is(json_kind::text))
    return wrong_param(param, "{} must be a schema, as an object or a text", param);
  return take_form(a, answer_form::json_schema, param, v);
}

api_refusal text(api_ask& a, json_slice v, answer_form form, const char* param) {
  if (v.is(json_kind::null)) return {};
  if (!v.is(json_kind::text)) return wrong_param(param, "{} must be a text", param);
  return take_form(a, form, param, v);
}

api_refusal choice(api_ask& a, json_slice v, const char* param) {
  if (v.is(json_kind::null)) return {};
  bool good = v.is(json_kind::list) && v.count() > 0 &&
              v.each([](json_slice item) { return item.is(json_kind::text); });
  if (!good) return wrong_param(param, "{} must be a list of texts", param);
  return take_form(a, answer_form::choice, param, v);
}

api_refusal any_object(api_ask& a, json_slice v, const char* param) {
  if (v.is(json_kind::null) || v.boolean() == false) return {};
  if (!v.boolean()) return wrong_param(param, "{} must be true or false", param);
  return take_form(a, answer_form::json_object, param);
}

api_refusal structured_member(api_ask& a, json_slice key, json_slice v) {
  if (key.says("json")) return schema(a, v, "structured_outputs.json");
  if (key.says("json_object")) return any_object(a, v, "structured_outputs.json_object");
  if (key.says("choice")) return choice(a, v, "structured_outputs.choice");
  if (key.says("regex")) return text(a, v, answer_form::regex, "structured_outputs.regex");
  if (key.says("grammar")) return text(a, v, answer_form::grammar, "structured_outputs.grammar");
  return wrong_param("structured_outputs",
                     "structured_outputs takes json, json_object, regex, choice or grammar");
}

api_refusal structured_outputs(api_ask& a, json_slice v) {
  if (v.is(json_kind::null)) return {};
  if (!v.is(json_kind::object))
    return wrong_param("structured_outputs", "structured_outputs must be an object");
  api_refusal refused;
  v.each([&](json_slice key, json_slice value) {
    return !(refused = structured_member(a, key, value));
  });
  return refused;
}

constexpr api_field fields[] = {
    {"response_format", response_format},
    {"structured_outputs", structured_outputs},
    // vLLM's older names for the same.
    {"guided_json", [](api_ask& a, json_slice v) { return schema(a, v, "guided_json"); }},
    {"guided_choice", [](api_ask& a, json_slice v) { return choice(a, v, "guided_choice"); }},
    {"guided_regex",
     [](api_ask& a, json_slice v) { return text(a, v, answer_form::regex, "guided_regex"); }},
    {"guided_grammar",
     [](api_ask& a, json_slice v) { return text(a, v, answer_form::grammar, "guided_grammar"); }},
};

}  // namespace

std::span<const api_field> form_fields() { return fields; }

}  // namespace lethe
