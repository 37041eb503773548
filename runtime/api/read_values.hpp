#pragma once

#include "runtime/api/api_ask.hpp"

namespace lethe {

/// Values of one type, with the parameter's name in the refusal. null means: left out.

template <class T>
api_refusal read_float(const char* name, json_slice from, T& into) {
  if (from.is(json_kind::null)) return {};
  auto value = from.number();
  if (!value) return wrong_param(name, "{} must be a number", name);
  into = float(*value);
  return {};
}

template <class T>
api_refusal read_whole(const char* name, json_slice from, int64_t least, int64_t most, T& into) {
  if (from.is(json_kind::null)) return {};
  auto value = from.whole();
  if (!value || *value < least || *value > most)
    return wrong_param(name, "{} must be an integer, {} to {}", name, least, most);
  into = uint64_t(*value);
  return {};
}

inline api_refusal read_flag(const char* name, json_slice from, bool& into) {
  if (from.is(json_kind::null)) return {};
  auto value = from.boolean();
  if (!value) return wrong_param(name, "{} must be true or false", name);
  into = *value;
  return {};
}

}  // namespace lethe
