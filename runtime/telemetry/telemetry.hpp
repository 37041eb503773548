#pragma once

#include <array>
#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/telemetry.capnp.h"

namespace lethe {

/// What may be told of an event: numbers and words of schemas/telemetry.capnp. No text, no pointer,
/// no character, and nothing that converts to a number.
template <class T>
concept telemetry_value = std::same_as<T, uint16_t> || std::same_as<T, uint32_t> ||
    std::same_as<T, uint64_t> || std::same_as<T, int> || std::same_as<T, schema::Part> ||
    std::same_as<T, schema::Fault> || std::same_as<T, schema::End>;

/// An event and its numbers, as they leave a process.
class telemetry_event {
 public:
  static constexpr size_t numbers_max = 3;

  template <telemetry_value... Values>
  requires(sizeof...(Values) <= numbers_max) constexpr explicit telemetry_event(schema::Event what,
                                                                                Values... values)
      : what_(what), numbers_{uint64_t(values)...}, count_(sizeof...(Values)) {}

  constexpr schema::Event what() const { return what_; }
  /// 0 where there are not so many.
  constexpr uint64_t number(size_t i) const { return i < count_ ? numbers_[i] : 0; }
  constexpr size_t count() const { return count_; }
  bool operator==(const telemetry_event&) const = default;

 private:
  schema::Event what_;
  std::array<uint64_t, numbers_max> numbers_;
  size_t count_;
};

/// Names of the operator's own file, settled before anything is served.
struct telemetry_names {
  std::string cluster, model;
  std::vector<std::string> hosts;

  uint32_t place_of(std::string_view host) const;  // one more than there are, if it isn't there
};

/// In the words of the schema.
std::string rendered(const telemetry_event& event, const telemetry_names& names);

/// The longest of the schema's ends that a reason begins with.
schema::End end_named(std::string_view reason);

/// How many numbers the schema's text of an event takes.
size_t numbers_of(schema::Event what);

}  // namespace lethe
