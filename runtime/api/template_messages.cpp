#include "runtime/api/template_messages.hpp"

#include <algorithm>

#include "runtime/json/json_text.hpp"

namespace lethe {

namespace {

constexpr std::string_view roles[] = {"system",    "developer", "user",
                                      "assistant", "tool",      "function"};

std::optional<json_slice> text_of_part(json_slice part) {
  auto type = part.find("type");
  auto text = part.find("text");
  bool good = type && type->says("text") && text && text->is(json_kind::text);
  return good ? text : std::nullopt;
}

api_refusal check_parts(json_slice parts, size_t i) {
  size_t at = 0;
  api_refusal refused;
  parts.each([&](json_slice part) {
    if (!text_of_part(part))
      refused =
          wrong_param(fmt::format("messages[{}].content[{}]", i, at),
                      "messages[{}].content[{}] must be {{\"type\": \"text\", \"text\": ...}}; "
                      "this model reads no other parts",
                      i, at);
    ++at;
    return !refused;
  });
  return refused;
}

std::pmr::string joined(json_slice parts, std::pmr::memory_resource* memory) {
  std::pmr::string all(memory);
  bool first = true;
  parts.each([&](json_slice part) {
    if (!std::exchange(first, false)) all += '\n';
    all += *text_of_part(part)->text(memory);
    return true;
  });
  return all;
}

void write_content(json_slice content, json_text& out, std::pmr::memory_resource* memory) {
  if (content.is(json_kind::text)) {
    out.raw(content.raw());
  } else if (content.is(json_kind::list)) {
    out.text(joined(content, memory));
  } else {
    out.text("");
  }
}

}  // namespace

api_refusal check_message(json_slice message, size_t i) {
  auto role = message.find("role");
  if (!role || !role->is(json_kind::text))
    return wrong_param(fmt::format("messages[{}]", i), "messages[{}] must be an object with a role",
                       i);
  if (std::ranges::none_of(roles, [&](std::string_view r) { return role->says(r); }))
    return wrong_param(fmt::format("messages[{}].role", i), "messages[{}].role must be one of {}",
                       i, fmt::join(roles, ", "));
  auto content = message.find("content");
  if (!content || content->is(json_kind::null) || content->is(json_kind::text)) return {};
  if (content->is(json_kind::list)) return check_parts(*content, i);
  return wrong_param(fmt::format("messages[{}].content", i),
                     "messages[{}].content must be a text or a list of parts", i);
}

std::pmr::string template_messages(json_slice messages, std::pmr::memory_resource* memory) {
  json_text out(memory);
  out.open('[');
  messages.each([&](json_slice message) {
    bool said = false;
    out.open('{');
    message.each([&](json_slice key, json_slice value) {
      out.key(*key.text(memory));
      bool content = key.says("content");
      content ? write_content(value, out, memory) : void(out.raw(value.raw()));
      said = said || content;
      return true;
    });
    if (!said) out.key("content").text("");
    out.close('}');
    return true;
  });
  return out.close(']').str();
}

}  // namespace lethe
