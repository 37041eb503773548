#include "runtime/config/toml_mapper.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include "runtime/base/similar.hpp"
#include "runtime/config/annotations.hpp"
#include "runtime/config/quantity.hpp"

namespace lethe {

namespace {

using capnp::DynamicList;
using capnp::DynamicStruct;
using capnp::StructSchema;
namespace type = capnp::schema;

constexpr size_t problems_max = 50;

/// The bounds of an unsigned field: its type's, narrowed by its annotations.
struct bounds {
  uint64_t least = 0, most = UINT64_MAX;
};

bounds bounds_of(StructSchema::Field field) {
  bounds b;
  switch (field.getType().which()) {
    case type::Type::UINT8:
      b.most = UINT8_MAX;
      break;
    case type::Type::UINT16:
      b.most = UINT16_MAX;
      break;
    case type::Type::UINT32:
      b.most = UINT32_MAX;
      break;
    default:
      break;
  }
  if (auto least = annotations::of(field, annotations::least_id)) b.least = least->getUint64();
  if (auto most = annotations::of(field, annotations::most_id)) b.most = most->getUint64();
  return b;
}

std::vector<std::string> names_of(StructSchema schema) {
  std::vector<std::string> names;
  for (auto field : schema.getFields())
    names.push_back(snake_case(field.getProto().getName().cStr()));
  return names;
}

std::vector<std::string> names_of(capnp::EnumSchema schema) {
  std::vector<std::string> names;
  for (auto e : schema.getEnumerants()) names.push_back(snake_case(e.getProto().getName().cStr()));
  return names;
}

class mapper {
 public:
  mapper(std::string_view file, toml_facts& facts) : file_(file), facts_(facts) {}

  void whole(const toml::table& from, DynamicStruct::Builder into) {
    table(from, "", into);
    for (const auto& [line, what] : found_)
      facts_.problems.push_back(fmt::format("{}:{}: {}", file_, line, what));
  }

 private:
  void table(const toml::table& from, const std::string& path, DynamicStruct::Builder into) {
    for (auto&& [key, node] : from) {
      std::string name(key.str()), at = path.empty() ? name : path + "." + name;
      facts_.lines[at] = key.source().begin.line;
      auto field = field_named(into.getSchema(), name);
      if (field)
        value(node, at, *field, into);
      else
        unknown(key.source().begin.line, at, name, names_of(into.getSchema()), "key");
    }
    for (auto field : into.getSchema().getFields()) {
      std::string name = snake_case(field.getProto().getName().cStr());
      if (annotations::has(field, annotations::required_id) && !from.contains(name))
        wrong(from.source().begin.line, "{} is missing: {}",
              path.empty() ? name : path + "." + name, help(field));
    }
  }

  template <class... Args>
  void wrong(uint32_t line, fmt::format_string<Args...> format, Args&&... args) {
    if (found_.size() < problems_max)
      found_.emplace(line, fmt::format(format, std::forward<Args>(args)...));
  }

  void unknown(uint32_t line, const std::string& at, const std::string& word,
               const std::vector<std::string>& known, const char* kind) {
    auto near = most_similar(word, known);
    std::string remedy = near ? fmt::format("did you mean {}?", *near)
                              : fmt::format("there are: {}", fmt::join(known, ", "));
    wrong(line, "{}: there is no {} \"{}\"; {}", at, kind, word, remedy);
  }

  static std::optional<StructSchema::Field> field_named(StructSchema schema,
                                                        std::string_view name) {
    for (auto field : schema.getFields())
      if (snake_case(field.getProto().getName().cStr()) == name) return field;
    return {};
  }

  static std::string help(StructSchema::Field field) {
    auto text = annotations::of(field, annotations::help_id);
    return text ? text->getText().cStr() : "";
  }

  void value(const toml::node& node, const std::string& at, StructSchema::Field field,
             DynamicStruct::Builder into) {
    switch (field.getType().which()) {
      case type::Type::TEXT:
        return text(node, at, field, into);
      case type::Type::BOOL:
        return flag(node, at, field, into);
      case type::Type::ENUM:
        return choice(node, at, field, into);
      case type::Type::STRUCT:
        return nested(node, at, field, into);
      case type::Type::LIST:
        return list(node, at, field, into);
      default:
        return number(node, at, field, into);
    }
  }

  void text(const toml::node& node, const std::string& at, StructSchema::Field field,
            DynamicStruct::Builder into) {
    if (auto* s = node.as_string())
      into.set(field, capnp::Text::Reader(s->get().c_str(), s->get().size()));
    else
      mismatch(node, at, "a text in quotes");
  }

  void flag(const toml::node& node, const std::string& at, StructSchema::Field field,
            DynamicStruct::Builder into) {
    if (auto* b = node.as_boolean())
      into.set(field, b->get());
    else
      mismatch(node, at, "true or false");
  }

  void choice(const toml::node& node, const std::string& at, StructSchema::Field field,
              DynamicStruct::Builder into) {
    auto known = names_of(field.getType().asEnum());
    auto* s = node.as_string();
    if (!s) return mismatch(node, at, fmt::format("one of: {}", fmt::join(known, ", ")));
    for (size_t i = 0; i < known.size(); ++i)
      if (known[i] == s->get()) {
        auto enumerant = field.getType().asEnum().getEnumerants()[unsigned(i)];
        return into.set(field, capnp::DynamicEnum(enumerant));
      }
    unknown(node.source().begin.line, at, s->get(), known, "choice");
  }

  void number(const toml::node& node, const std::string& at, StructSchema::Field field,
              DynamicStruct::Builder into) {
    bool in_bytes = annotations::has(field, annotations::bytes_id);
    std::optional<uint64_t> given;
    if (auto* n = node.as_integer(); n && n->get() >= 0) given = uint64_t(n->get());
    if (auto* s = node.as_string(); s && in_bytes) given = parse_bytes(s->get());
    bounds b = bounds_of(field);
    if (given && *given >= b.least && *given <= b.most) return into.set(field, *given);
    if (in_bytes && !given)
      return mismatch(node, at, "a size, as \"512 MiB\" or a number of bytes");
    if (node.is_integer())
      return wrong(node.source().begin.line, "{}: is out of range; {} to {}", at, b.least, b.most);
    mismatch(node, at, fmt::format("a whole number, {} to {}", b.least, b.most));
  }

  void nested(const toml::node& node, const std::string& at, StructSchema::Field field,
              DynamicStruct::Builder into) {
    if (auto* t = node.as_table())
      table(*t, at, into.init(field).as<DynamicStruct>());
    else
      mismatch(node, at, fmt::format("a table: [{}]", at));
  }

  void list(const toml::node& node, const std::string& at, StructSchema::Field field,
            DynamicStruct::Builder into) {
    bool of_tables = field.getType().asList().getElementType().isStruct();
    auto* a = node.as_array();
    if (!a) return mismatch(node, at, of_tables ? fmt::format("tables: [[{}]]", at) : "a list");
    auto most = annotations::of(field, annotations::elements_id);
    if (most && a->size() > most->getUint32())
      return wrong(node.source().begin.line, "{}: has {} elements; {} at most", at, a->size(),
                   most->getUint32());
    auto items = into.init(field, unsigned(a->size())).as<DynamicList>();
    for (size_t i = 0; i < a->size(); ++i) {
      const toml::node& item = *a->get(i);
      std::string here = fmt::format("{}[{}]", at, i);
      facts_.lines[here] = item.source().begin.line;
      if (of_tables && item.is_table())
        table(*item.as_table(), here, items[unsigned(i)].as<DynamicStruct>());
      else if (!of_tables && item.is_string())
        items.set(unsigned(i), capnp::Text::Reader(item.as_string()->get().c_str()));
      else
        mismatch(item, here, of_tables ? "a table" : "a text in quotes");
    }
  }

  void mismatch(const toml::node& node, const std::string& at, const std::string& want) {
    wrong(node.source().begin.line, "{}: must be {}", at, want);
  }

  std::string_view file_;
  toml_facts& facts_;
  std::multimap<uint32_t, std::string> found_;  // by line: a table's keys come in another order
};

}  // namespace

uint32_t toml_facts::line_of(std::string path) const {
  while (true) {
    auto found = lines.find(path);
    if (found != lines.end()) return found->second;
    size_t cut = path.find_last_of(".[");
    if (cut == path.npos) return 1;
    path.resize(cut);
  }
}

std::string snake_case(std::string_view camel) {
  std::string snake;
  for (char c : camel) {
    bool upper = c >= 'A' && c <= 'Z';
    if (upper) snake += '_';
    snake += upper ? char(c - 'A' + 'a') : c;
  }
  return snake;
}

toml_facts map_toml(std::string_view text, std::string_view file,
                    capnp::DynamicStruct::Builder into) {
  toml_facts facts;
  try {
    mapper(file, facts).whole(toml::parse(text), into);
  } catch (const toml::parse_error& e) {
    facts.problems.push_back(
        fmt::format("{}:{}: not TOML: {}", file, e.source().begin.line, e.description()));
  }
  return facts;
}

}  // namespace lethe
