#pragma once

#include <cstdint>
#include <functional>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace lethe {

enum class json_kind : uint8_t { null, boolean, number, text, list, object };

/// A value inside a JSON text that was checked as a whole: a view, nothing is copied. The text
/// stays where its owner keeps it, in a request's arena.
class json_slice {
 public:
  json_kind kind() const;
  std::string_view raw() const { return raw_; }

  bool is(json_kind k) const { return kind() == k; }
  std::optional<bool> boolean() const;
  /// A number of any form, as a double.
  std::optional<double> number() const;
  /// A number without fraction or exponent.
  std::optional<int64_t> whole() const;
  /// With escapes resolved, in `memory`.
  std::optional<std::pmr::string> text(std::pmr::memory_resource* memory) const;
  /// Compared without a copy; keys and short words.
  bool says(std::string_view word) const;

  /// Calls `take` for each element until it returns false. Whether all were taken.
  bool each(const std::function<bool(json_slice)>& take) const;
  bool each(const std::function<bool(json_slice key, json_slice value)>& take) const;
  /// The last member of that name, as JSON readers do.
  std::optional<json_slice> find(std::string_view key) const;
  size_t count() const;

 private:
  friend result<json_slice> check_json(std::string_view text);
  explicit json_slice(std::string_view raw) : raw_(raw) {}
  std::string_view raw_;
};

inline constexpr uint32_t json_depth_max = 128;

/// RFC 8259 with valid UTF-8, valid surrogate pairs and at most json_depth_max nested containers.
/// Errors say at which byte.
result<json_slice> check_json(std::string_view text);

}  // namespace lethe
