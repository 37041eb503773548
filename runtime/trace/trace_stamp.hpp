#pragma once

#include <cstdint>

namespace lethe {

enum class actor_kind : uint8_t {
  none,
  face,
  scheduler,
  directory,
  supervisor,
  engine,
  request,
  gateway,
  service
};
const char* name_of(actor_kind k);

/// Who sent or took a message: kind, which of that kind, and in which process.
struct actor_tag {
  actor_kind kind = actor_kind::none;
  uint16_t index = 0;    // engine: its slot
  uint32_t process = 0;  // its pid

  constexpr uint64_t packed() const {
    return uint64_t(kind) << 56 | uint64_t{index} << 32 | process;
  }
  static constexpr actor_tag unpacked(uint64_t bits) {
    return {actor_kind(bits >> 56), uint16_t(bits >> 32), uint32_t(bits)};
  }
  friend bool operator==(const actor_tag&, const actor_tag&) = default;
};

/// Travels with every message.
struct trace_stamp {
  uint64_t trace = 0;  // of one request; 0: of none
  uint64_t lamport = 0;
  uint64_t sender = 0;   // actor_tag, packed
  uint64_t sent_ns = 0;  // on the sender's clock
};

}  // namespace lethe
