#include "runtime/wire/wire.hpp"

#include <kj/exception.h>

namespace lethe::wire_detail {

std::vector<std::byte> frame_of(capnp::MessageBuilder& message) {
  std::vector<std::byte> frame(capnp::computeSerializedSizeInWords(message) * sizeof(capnp::word));
  kj::ArrayOutputStream out(kj::arrayPtr(reinterpret_cast<kj::byte*>(frame.data()), frame.size()));
  capnp::writeMessage(out, message);
  return frame;
}

result<void> with_reader(bytes_view frame, void* context,
                         void (*read)(void*, capnp::MessageReader&)) try {
  if (frame.size() % sizeof(capnp::word) != 0) return fail("message: {} bytes", frame.size());
  // A pointer may be followed often, so that a small frame could cost much: eight times is enough
  // for any honest one.
  capnp::ReaderOptions bounds{.traversalLimitInWords = frame.size() + 64, .nestingLimit = 16};
  capnp::FlatArrayMessageReader reader(
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(frame.data()),
                   frame.size() / sizeof(capnp::word)),
      bounds);
  read(context, reader);
  return {};
} catch (const kj::Exception& e) {
  return fail("message: {}", e.getDescription().cStr());
}

}  // namespace lethe::wire_detail
