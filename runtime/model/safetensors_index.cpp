#include <simdjson.h>

#include <algorithm>

#include "runtime/base/limits.hpp"
#include "runtime/model/byte_reader.hpp"
#include "runtime/model/safetensors.hpp"

namespace lethe {

namespace dom = simdjson::dom;

namespace {

constexpr size_t nesting_max = 16;
constexpr size_t file_name_bytes_max = 255;

/// A plain name in the same folder: nothing that leads elsewhere.
bool is_plain_name(std::string_view file) {
  if (file.empty() || file.size() > file_name_bytes_max || file[0] == '.') return false;
  return std::none_of(file.begin(), file.end(),
                      [](char c) { return c == '/' || c == '\\' || uint8_t(c) < ' ' || c == 127; });
}

using places = std::vector<std::pair<std::string, std::string>>;  // tensor, file

result<places> read_places(dom::object map, std::string_view where) {
  places all;
  for (auto member : map) {
    std::string_view file;
    if (member.value.get(file))
      return fail("{}: weight_map \"{}\" must be a file name", where, printable(member.key));
    if (!is_plain_name(file))
      return fail("{}: \"{}\" is not the name of a file in the same folder", where,
                  printable(file));
    all.emplace_back(std::string(member.key), std::string(file));
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i].first == all[i - 1].first)
      return fail("{}: tensor \"{}\" comes twice", where, printable(all[i].first));
  if (all.empty()) return fail("{}: weight_map is empty", where);
  return all;
}

}  // namespace

result<safetensors_index> read_safetensors_index(std::string_view json, std::string_view where) {
  if (json.size() > limits::json_file_bytes_max)
    return fail("{}: {} bytes; at most {} are read", where, json.size(),
                limits::json_file_bytes_max);
  dom::parser parser;
  dom::object object, map;
  auto failed = parser.allocate(json.size(), nesting_max);
  if (!failed) failed = parser.parse(json.data(), json.size(), true).get(object);
  if (failed) return fail("{}: not a JSON object: {}", where, simdjson::error_message(failed));
  if (object.at_key("weight_map").get(map)) return fail("{}: weight_map is missing", where);
  auto all = read_places(map, where);
  if (!all) return all.why();
  safetensors_index index;
  for (const auto& place : *all) index.files.push_back(place.second);
  std::sort(index.files.begin(), index.files.end());
  index.files.erase(std::unique(index.files.begin(), index.files.end()), index.files.end());
  for (auto& [tensor, file] : *all) {
    auto at = std::lower_bound(index.files.begin(), index.files.end(), file);
    index.tensors.emplace_back(std::move(tensor), uint32_t(at - index.files.begin()));
  }
  return index;
}

}  // namespace lethe
