#pragma once

#include <memory_resource>
#include <span>
#include <string>
#include <string_view>

namespace lethe {

/// Writes JSON into a text that lives where the caller wants it.
class json_text {
 public:
  explicit json_text(std::pmr::memory_resource* memory) : out_(memory) {}

  json_text& open(char bracket);  // '{' or '['
  json_text& close(char bracket);
  json_text& key(std::string_view name);
  json_text& text(std::string_view value);  // what is no UTF-8 becomes U+FFFD
  json_text& number(uint64_t value);
  json_text& number(double value);  // shortest form that reads back the same; null if not finite
  json_text& boolean(bool value);
  json_text& null();
  /// Somebody else's valid JSON.
  json_text& raw(std::string_view json);
  json_text& ids(std::span<const uint32_t> values);

  const std::pmr::string& str() const { return out_; }

 private:
  void separate();
  std::pmr::string out_;
  bool first_ = true;  // nothing before the next value needs a comma
};

}  // namespace lethe
