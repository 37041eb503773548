#pragma once

#include "kernels/cuda/cuda_row.hpp"
#include "parallel/nccl_library.hpp"
#include "tests/cuda/socket_group.hpp"

namespace lethe::emulated {

/// One call of a rank, as NCCL is told it.
struct nccl_work {
  nccl_call what;
  std::shared_ptr<socket_group> group;
  const void* from;
  void* to;
  size_t count;  // of each rank
  nccl_type type;
  int other = 0;  // the root, or who sends or receives
};

/// Calls that are done as one, any number of times: all that they send and receive goes at once, in
/// their order between any two ranks. What others sent to be added lies in memory of its own while
/// that lasts, and is wiped.
class socket_exchange {
 public:
  explicit socket_exchange(std::vector<nccl_work> works) : works_(std::move(works)) {}
  socket_exchange(const socket_exchange&) = delete;
  ~socket_exchange() { drop(); }

  /// Goes on; `not_ready` after a moment in which nothing came. An exchange whose group has ended
  /// is done.
  device_error go_on();

 private:
  /// Before what is sent, so that ranks which differ in what they call are seen.
  struct frame {
    nccl_call what;
    nccl_type type;
    uint64_t bytes;
    bool operator==(const frame&) const = default;
  };
  struct transfer {
    socket_group* group;
    int rank;
    frame head;
    std::byte* at;
    frame came{};
    size_t moved = 0;  // of frame and bytes
    bool done() const { return moved == sizeof head + head.bytes; }
    int fd() const { return group->data_of(rank); }
  };
  using transfers = std::vector<transfer>;

  void begin();
  void plan(const nccl_work& w, std::vector<std::byte>& parts);
  void give(const nccl_work& w, int rank, const void* from, size_t bytes);
  void get(const nccl_work& w, int rank, void* to, size_t bytes);
  void move(transfers& all, bool out);
  bool move_some(transfer& t, bool out);
  bool moved() const;
  bool ended() const;
  bool failed() const;
  void wait() const;
  void complete();
  void drop();

  const std::vector<nccl_work> works_;
  bool begun_ = false;
  transfers out_, in_;
  std::vector<std::vector<std::byte>> parts_;  // of each call, by rank
};

}  // namespace lethe::emulated
