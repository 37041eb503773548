#pragma once

#include <caf/all.hpp>

#include "runtime/wire/wire.hpp"

// How CAF carries our messages between processes: bounded before anything is allocated.
namespace lethe {

template <class Inspector>
auto inspect(Inspector& f, trace_stamp& s) {
  return f(s.trace, s.lamport, s.sender, s.sent_ns);
}

template <class Schema>
caf::error inspect(caf::serializer& f, wire<Schema>& m) {
  uint32_t size = uint32_t(m.frame.size());
  if (auto failed = f(m.stamp, size)) return failed;
  return size ? f.apply_raw(size, m.frame.data()) : caf::error{};
}

template <class Schema>
caf::error inspect(caf::deserializer& f, wire<Schema>& m) {
  uint32_t size = 0;
  if (auto failed = f(m.stamp, size)) return failed;
  if (size > frame_bytes_max<Schema>)
    return caf::make_error(caf::sec::invalid_argument, "frame", size);
  m.frame.resize(size);
  return size ? f.apply_raw(size, m.frame.data()) : caf::error{};
}

/// Loggers and error texts see that there was a message, never what is in it.
template <class Inspector, class Schema>
typename Inspector::result_type inspect(Inspector& f, wire<Schema>&) {
  return f(caf::meta::type_name("wire"));
}

}  // namespace lethe
