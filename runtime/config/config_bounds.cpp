#include "runtime/config/config_bounds.hpp"

#include <capnp/dynamic.h>

#include "runtime/config/annotations.hpp"
#include "runtime/config/toml_mapper.hpp"

namespace lethe {

namespace {

using capnp::DynamicStruct;
using capnp::DynamicValue;

result<void> check_struct(DynamicStruct::Reader from, const std::string& path);

result<void> check_number(capnp::StructSchema::Field field, uint64_t n, const std::string& at) {
  auto least = annotations::of(field, annotations::least_id);
  auto most = annotations::of(field, annotations::most_id);
  if ((least && n < least->getUint64()) || (most && n > most->getUint64()))
    return fail("{}: {} is out of range; {} to {}", at, n, least ? least->getUint64() : 0,
                most ? most->getUint64() : UINT64_MAX);
  return {};
}

result<void> check_list(capnp::StructSchema::Field field, capnp::DynamicList::Reader list,
                        const std::string& at) {
  auto most = annotations::of(field, annotations::elements_id);
  if (most && list.size() > most->getUint32())
    return fail("{}: has {} elements; {} at most", at, list.size(), most->getUint32());
  if (!list.getSchema().getElementType().isStruct()) return {};
  for (unsigned i = 0; i < list.size(); ++i)
    if (auto ok = check_struct(list[i].as<DynamicStruct>(), fmt::format("{}[{}]", at, i)); !ok)
      return ok;
  return {};
}

result<void> check_struct(DynamicStruct::Reader from, const std::string& path) {
  for (auto field : from.getSchema().getFields()) {
    std::string name = snake_case(field.getProto().getName().cStr());
    std::string at = path.empty() ? name : path + "." + name;
    auto value = from.get(field);
    result<void> ok;
    if (value.getType() == DynamicValue::UINT)
      ok = check_number(field, value.as<uint64_t>(), at);
    else if (value.getType() == DynamicValue::LIST)
      ok = check_list(field, value.as<capnp::DynamicList>(), at);
    else if (value.getType() == DynamicValue::STRUCT)
      ok = check_struct(value.as<DynamicStruct>(), at);
    else if (value.getType() == DynamicValue::ENUM &&
             value.as<capnp::DynamicEnum>().getEnumerant() == nullptr)
      ok = fail("{}: is a word that this build doesn't know", at);
    if (!ok) return ok;
  }
  return {};
}

}  // namespace

result<void> check_bounds(schema::Config::Reader config) {
  return check_struct(DynamicStruct::Reader(config), "");
}

}  // namespace lethe
