#pragma once

#include <cstdint>

#include "runtime/base/result.hpp"

namespace lethe {

/// Why something that was asked of a cluster did not come.
enum class call_fault : uint8_t {
  none,
  here,       // this machine: a file, its clock
  request,    // no such request can be sent, or none so large
  relay,      // not reached, or it refuses
  gateway,    // it refuses, or what it says makes no sense
  stale_key,  // it does not take the key that was used: nothing was processed
  trust,      // what is shown is not what was logged, or not what the trust file accepts
  tokens,     // none is left
  exposure,   // this body was drawn for as often as may be
  busy,       // nodes refuse; nothing was answered
  answer,     // it is not whole, or not one of a node that was asked
  cancelled,
};

/// How something went that has more than one way to fail.
struct call_end {
  call_fault fault = call_fault::none;
  error why;
  bool hung = false;           // nothing came, and nobody said why
  uint32_t retry_after_s = 0;  // when to ask again; 0: whenever

  explicit operator bool() const noexcept { return fault == call_fault::none; }
};

template <class... Args>
call_end fault(call_fault kind, fmt::format_string<Args...> format, Args&&... args) {
  return {kind, fail(format, std::forward<Args>(args)...)};
}

/// A value, or how it failed.
template <class T>
struct call_result {
  call_result(T v) : value(std::move(v)) {}
  call_result(call_end e) : end(std::move(e)) { check(!end); }

  explicit operator bool() const noexcept { return bool(end); }
  T& operator*() { return *value; }
  T* operator->() { return &*value; }

  call_end end;
  std::optional<T> value;
};

}  // namespace lethe
