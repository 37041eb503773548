#pragma once

#include <unistd.h>

#include "actors/cluster/messages.hpp"
#include "actors/cluster/quiet.hpp"
#include "runtime/trace/tracer.hpp"

namespace lethe {

/// Stamps what an actor sends and records what it takes in hand.
class clerk {
 public:
  clerk() = default;
  clerk(tracer* trace, actor_kind kind, uint16_t index = 0)
      : trace_(trace), self_(actor_tag{kind, index, uint32_t(::getpid())}.packed()) {}

  template <class Schema, class Fill>
  wire<Schema> write(uint64_t request, Fill&& fill) const {
    return pack<Schema>(
        {.trace = request, .lamport = trace_->tick(), .sender = self_, .sent_ns = trace_->now()},
        std::forward<Fill>(fill));
  }

  /// Calls `use` with the message; a frame that is no message of its schema is dropped. The
  /// record holds how long it waited and how long `use` took.
  template <class Schema, class Use>
  void read(const wire<Schema>& m, Use&& use) const {
    constexpr uint64_t type = capnp::typeId<Schema>();
    uint64_t lamport = trace_->meet(m.stamp.lamport);
    uint64_t begin = trace_->now();
    auto done = unpack(m, std::forward<Use>(use));
    if (!done || !trace_->records(type)) return;
    uint64_t end = trace_->now();
    trace_->write({.at_ns = begin,
                   .trace = m.stamp.trace,
                   .lamport = lamport,
                   .sender = m.stamp.sender,
                   .receiver = self_,
                   .type = type,
                   .queued_ns = int64_t(begin - m.stamp.sent_ns),
                   .handled_ns = end - begin,
                   .bytes = uint32_t(m.frame.size())});
  }

  uint64_t now_ns() const { return trace_->now(); }
  tracer& trace() const { return *trace_; }

 private:
  tracer* trace_ = nullptr;
  uint64_t self_ = 0;
};

/// Whoever sent the message in hand, by the interface it must have.
template <class Handle>
Handle sender_of(caf::local_actor* self) {
  return caf::actor_cast<Handle>(self->current_sender());
}

}  // namespace lethe
