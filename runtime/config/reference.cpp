#include "runtime/config/reference.hpp"

#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <fmt/format.h>

#include "runtime/config/annotations.hpp"
#include "runtime/config/toml_mapper.hpp"
#include "schemas/config.capnp.h"

namespace lethe {

namespace {

using capnp::StructSchema;
namespace type = capnp::schema;

std::string help_of(StructSchema::Field field) {
  auto text = annotations::of(field, annotations::help_id);
  return text ? text->getText().cStr() : "";
}

std::string choices_of(capnp::EnumSchema schema) {
  std::string all;
  for (auto e : schema.getEnumerants())
    all += (all.empty() ? "" : " | ") + snake_case(e.getProto().getName().cStr());
  return all;
}

std::string default_of(capnp::DynamicStruct::Reader from, StructSchema::Field field) {
  auto value = from.get(field);
  switch (field.getType().which()) {
    case type::Type::TEXT:
      return fmt::format("\"{}\"", value.as<capnp::Text>().cStr());
    case type::Type::BOOL:
      return value.as<bool>() ? "true" : "false";
    case type::Type::ENUM:
      KJ_IF_MAYBE (e, value.as<capnp::DynamicEnum>().getEnumerant())
        return "\"" + snake_case(e->getProto().getName().cStr()) + "\"";
      return "";
    case type::Type::LIST:
      return "[]";
    default:
      return fmt::format("{}", value.as<uint64_t>());
  }
}

std::string bounds_text(StructSchema::Field field) {
  if (field.getType().isEnum()) return choices_of(field.getType().asEnum());
  if (annotations::has(field, annotations::bytes_id)) return "bytes, or as \"512 MiB\"";
  auto least = annotations::of(field, annotations::least_id);
  auto most = annotations::of(field, annotations::most_id);
  if (!most) return annotations::has(field, annotations::required_id) ? "required" : "";
  return fmt::format("{} to {}", least ? least->getUint64() : 0, most->getUint64());
}

bool is_table(StructSchema::Field field) {
  auto t = field.getType();
  return t.isStruct() || (t.isList() && t.asList().getElementType().isStruct());
}

void write_key(std::string& out, capnp::DynamicStruct::Reader from, StructSchema::Field field) {
  std::string bounds = bounds_text(field);
  out +=
      fmt::format("{:<34} # {}{}\n",
                  snake_case(field.getProto().getName().cStr()) + " = " + default_of(from, field),
                  help_of(field), bounds.empty() ? "" : " (" + bounds + ")");
}

void write_table(std::string& out, capnp::DynamicStruct::Reader from) {
  for (auto field : from.getSchema().getFields())
    if (!is_table(field)) write_key(out, from, field);
}

}  // namespace

std::string config_reference() {
  capnp::MallocMessageBuilder message;
  capnp::DynamicStruct::Reader root = message.initRoot<schema::Config>().asReader();
  std::string out;
  write_table(out, root);
  for (auto field : root.getSchema().getFields()) {
    if (!is_table(field)) continue;
    std::string name = snake_case(field.getProto().getName().cStr());
    bool many = field.getType().isList();
    out += fmt::format("\n# {}\n", help_of(field));
    out += many ? "[[" + name + "]]\n" : "[" + name + "]\n";
    auto item = many ? field.getType().asList().getStructElementType() : field.getType().asStruct();
    capnp::MallocMessageBuilder empty;
    write_table(out, empty.initRoot<capnp::DynamicStruct>(item).asReader());
  }
  return out;
}

}  // namespace lethe
