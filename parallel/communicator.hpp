#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/result.hpp"

namespace lethe {

/// One rank's end of a group. Calls are collective and made by one thread per rank, in the same
/// order on every rank. After an error or an abort every later call fails at once: the group is
/// dead and must be made anew. Memory named in a call stays valid until every rank's call has
/// returned, also after an abort.
class communicator {
 public:
  virtual ~communicator() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;

  /// data[i] becomes the sum over ranks, added in the fixed tree ((0+1)+(2+3))+...: the upper
  /// levels of the tree whose leaves are the segments of K.
  virtual result<void> all_reduce(std::span<float> data) = 0;
  /// `parts[r]` is where rank r's floats lie in `all`; mine are already there. Afterwards all are.
  struct extent {
    size_t offset, count;
    bool operator==(const extent&) const = default;
  };
  virtual result<void> all_gather(std::span<float> all, std::span<const extent> parts) = 0;
  /// Like all_reduce, but only parts[rank] of data is valid afterwards.
  virtual result<void> reduce_scatter(std::span<float> data, std::span<const extent> parts) = 0;
  virtual result<void> broadcast(std::span<std::byte> data, uint32_t root) = 0;

  /// One message is under way at most: returns when the one before to that rank was received.
  /// `data` may be read where it lies until the next send to that rank, or flush, has returned.
  /// Works on with a second buffer meanwhile; nothing is copied on the way.
  virtual result<void> send(std::span<const std::byte> data, uint32_t to) = 0;
  virtual result<void> recv(std::span<std::byte> data, uint32_t from) = 0;
  /// Returns when all that this rank sent was received: its buffers may be wiped.
  virtual result<void> flush() = 0;
  virtual result<void> barrier() = 0;

  /// Wakes everyone who waits in this group, with an error. From any thread.
  virtual void abort() = 0;

  /// Whether the group lives, as far as one hears without waiting. From any thread.
  virtual result<void> health() = 0;

  /// Wipes what calls have left in memory of the group's own. Not during a call.
  virtual void wipe() = 0;
};

}  // namespace lethe
