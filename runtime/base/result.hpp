#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "runtime/base/check.hpp"

namespace lethe {

/// What went wrong, where, and how to mend it. Never holds content of a request.
struct error {
  std::string text;
};

template <class... Args>
error fail(fmt::format_string<Args...> format, Args&&... args) {
  return {fmt::format(format, std::forward<Args>(args)...)};
}

/// A value, or why there is none. For what peers, operators and files may do wrong;
/// our own mistakes are `check`ed.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(error why) : state_(std::in_place_index<1>, std::move(why)) {}

  explicit operator bool() const noexcept { return state_.index() == 0; }
  T& operator*() & {
    check(bool(*this));
    return std::get<0>(state_);
  }
  const T& operator*() const& {
    check(bool(*this));
    return std::get<0>(state_);
  }
  T&& operator*() && {
    check(bool(*this));
    return std::get<0>(std::move(state_));
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }
  const error& why() const {
    check(!*this);
    return std::get<1>(state_);
  }

 private:
  std::variant<T, error> state_;
};

template <>
class [[nodiscard]] result<void> {
 public:
  result() = default;
  result(error why) : why_(std::move(why)) {}
  explicit operator bool() const noexcept { return !why_; }
  const error& why() const {
    check(bool(why_));
    return *why_;
  }

 private:
  std::optional<error> why_;
};

}  // namespace lethe
