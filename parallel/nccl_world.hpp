#pragma once

#include "parallel/nccl_communicator.hpp"

namespace lethe {

/// A rank's end of a replica whose ranks are processes with a GPU each, of one epoch. Groups of an
/// epoch form, fail and end together; after an end they are made anew in another epoch.
class nccl_world {
 public:
  /// `control` joins the same ranks, in this epoch, and carries nothing else: by it the ranks are
  /// told of ends, and whoever is not of the epoch gets no further than that. The thread that joins
  /// has chosen its device (cudaSetDevice), as every thread that makes calls.
  static result<std::unique_ptr<nccl_world>> join(nccl_config config, const nccl_functions& library,
                                                  std::unique_ptr<communicator> control);
  /// Closes it.
  ~nccl_world();

  nccl_communicator& world() { return world_; }
  /// The ranks of this one's stage, and those in its place of every stage: null where it is alone.
  nccl_communicator* tensor() { return one_of(tensor_, session_->config().ranks.tensor); }
  nccl_communicator* pipeline() { return one_of(pipeline_, session_->config().ranks.pipeline); }

  /// Memory for what collectives work on, the same size on all ranks. It is the world's, and gone
  /// when that was closed; who wrote content into it wipes it first, also after an error.
  result<nccl_memory> allocate(size_t bytes) { return session_->allocate(bytes); }

  /// Until `done`, which asks the device without waiting (cudaEventQuery), says so. The device has
  /// then done all, and NCCL has seen no error; after an error NCCL has left the device.
  result<void> wait(const std::function<bool()>& done) { return session_->wait(done); }
  /// Whether the groups live. From any thread, as abort.
  result<void> health() const { return session_->health(); }
  /// Ends the groups on all ranks; returns at once.
  void abort() { session_->abort(); }
  /// On all ranks. Streams are idle and graphs destroyed: NCCL waits for these.
  result<void> close() { return session_->close(); }

 private:
  explicit nccl_world(std::shared_ptr<nccl_session> session);

  /// In a grid of one row, or one column, that is the world.
  nccl_communicator* one_of(std::optional<nccl_communicator>& split, uint32_t ranks) {
    return ranks == 1 ? nullptr : split ? &*split : &world_;
  }

  const std::shared_ptr<nccl_session> session_;
  nccl_communicator world_;
  std::optional<nccl_communicator> tensor_, pipeline_;
};

}  // namespace lethe
