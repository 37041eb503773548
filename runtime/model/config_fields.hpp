#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/problems.hpp"

namespace lethe {

/// An object of a JSON file that a stranger wrote. Absent and null members are none; one of the
/// wrong kind is a problem, named with `where` before it, and then none.
class config_fields {
 public:
  /// `where` ends so that a key can follow: "config.json: ", "config.json: rope_scaling.".
  config_fields(simdjson::dom::object object, std::string where, problem_list& problems)
      : object_(object), where_(std::move(where)), problems_(&problems) {}

  bool has(std::string_view key) const { return find(key).has_value(); }
  std::optional<simdjson::dom::element> find(std::string_view key) const;
  /// There and null, which sometimes differs from not there.
  bool is_null(std::string_view key) const;
  std::optional<uint32_t> u32(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;  // finite
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  std::optional<config_fields> object(std::string_view key) const;
  std::vector<std::string_view> texts(std::string_view key) const;
  /// One id, or a list; some files write -1 for none.
  std::vector<uint32_t> ids(std::string_view key) const;
  std::optional<uint32_t> id(std::string_view key) const;  // the first
  uint32_t required(std::string_view key) const;           // 0 after a problem

  const std::string& where() const noexcept { return where_; }
  problem_list& problems() const noexcept { return *problems_; }
  simdjson::dom::object members() const noexcept { return object_; }

 private:
  std::nullopt_t wrong(std::string_view key, const char* wanted) const;

  simdjson::dom::object object_;
  std::string where_;
  problem_list* problems_;
};

/// A whole JSON file. The parser owns what the fields view.
std::optional<config_fields> parse_config(simdjson::dom::parser& parser, std::string_view json,
                                          std::string_view where, problem_list& problems);

}  // namespace lethe
