#include "parallel/nccl_world.hpp"

namespace lethe {
result<std::unique_ptr<nccl_world>> nccl_world::join(nccl_config c, const nccl_functions& library,
                                                     std::unique_ptr<communicator> control) {
  auto [t, p] = c.ranks;
  if (control->size() != t * p || control->rank() != c.rank)
    return fail("communicator: rank {} of {} does not fit tensor {} x pipeline {}", control->rank(),
                control->size(), t, p);
  auto session = nccl_session::start(std::move(c), library, std::move(control));
  if (!session) return session.why();
  if (auto formed = (*session)->form(); !formed) {
    if (auto closed = (*session)->close(); !closed) return closed.why();
    return formed.why();
  }
  return std::unique_ptr<nccl_world>(new nccl_world(*std::move(session)));
}

nccl_world::nccl_world(std::shared_ptr<nccl_session> s)
    : session_(std::move(s)),
      world_(session_, nccl_session::world, session_->config().rank, session_->size()) {
  auto [rank, ranks] = std::pair(session_->config().rank, session_->config().ranks);
  if (ranks.tensor == 1 || ranks.pipeline == 1) return;
  tensor_.emplace(session_, nccl_session::tensor, rank % ranks.tensor, ranks.tensor);
  pipeline_.emplace(session_, nccl_session::pipeline, rank / ranks.tensor, ranks.pipeline);
}

nccl_world::~nccl_world() { (void)close(); }

}  // namespace lethe
