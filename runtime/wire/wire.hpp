#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <vector>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"
#include "runtime/trace/trace_stamp.hpp"

namespace lethe {

/// A message between actors: a Cap'n Proto frame of one schema, with its stamp.
template <class Schema>
struct wire {
  trace_stamp stamp;
  std::vector<std::byte> frame;  // starts at 8-byte boundaries, as Cap'n Proto reads in place
};

/// Largest frame of a schema; more is refused before anything is allocated.
template <class Schema>
inline constexpr size_t frame_bytes_max = size_t{64} << 10;

namespace wire_detail {
std::vector<std::byte> frame_of(capnp::MessageBuilder& message);
/// Calls `read` with the message of a frame; what Cap'n Proto finds wrong with it becomes an error.
result<void> with_reader(bytes_view frame, void* context,
                         void (*read)(void*, capnp::MessageReader&));
}  // namespace wire_detail

template <class Schema, class Fill>
wire<Schema> pack(trace_stamp stamp, Fill&& fill) {
  capnp::word scratch[256] = {};
  capnp::MallocMessageBuilder message(kj::ArrayPtr<capnp::word>(scratch, 256));
  fill(message.initRoot<Schema>());
  return {stamp, wire_detail::frame_of(message)};
}

/// Calls `use` with a reader. Any peer may have sent the frame: fields are checked as they are
/// read, so all of the reading belongs into `use`.
template <class Schema, class Use>
result<void> unpack(const wire<Schema>& m, Use&& use) {
  if (m.frame.size() > frame_bytes_max<Schema>) return fail("message: {} bytes", m.frame.size());
  return wire_detail::with_reader(m.frame, &use, [](void* context, capnp::MessageReader& reader) {
    (*static_cast<std::remove_reference_t<Use>*>(context))(reader.getRoot<Schema>());
  });
}

inline bytes_view bytes_of(capnp::Data::Reader data) {
  return {reinterpret_cast<const std::byte*>(data.begin()), data.size()};
}

inline capnp::Data::Reader data_of(bytes_view b) {
  return {reinterpret_cast<const kj::byte*>(b.data()), b.size()};
}

}  // namespace lethe
