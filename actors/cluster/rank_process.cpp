#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "actors/cluster/child_process.hpp"
#include "actors/cluster/open_engine.hpp"
#include "actors/cluster/rank_house.hpp"
#include "actors/cluster/rank_link.hpp"
#include "actors/cluster/rank_socket.hpp"
#include "parallel/process_ranks.hpp"
#include "runtime/hardening/harden.hpp"

namespace lethe {

namespace {

constexpr int socket_fd = first_own_fd, weights_fd = first_own_fd + 1;

result<void> serve(uint32_t rank, schema::EngineSpec::Reader spec) {
  const bool hardens = spec.getProfile() != schema::Profile::LAB;
  if (hardens)
    if (auto hard = refuse_dumps(); !hard) return hard;
  key_bytes secret(rank_secret_bytes);
  if (::recv(socket_fd, secret.data(), secret.size(), MSG_WAITALL) != ssize_t(secret.size()))
    return fail("there is no secret; engines start ranks, not people");
  auto file = checkpoint::open(spec.getModel().getPath().cStr());
  if (!file) return file.why();
  auto model = attach_weights(*file, spec.getModel().getQuantize(), weights_fd);
  if (!model) return model.why();
  auto config = engine::ranks_for((*model)->weights().shape, config_of(spec));
  if (!config) return config.why();
  auto link = link_of(spec, *config, rank, std::move(secret));
  rank_socket store(socket_fd);
  auto groups = join_rank_groups(link.base, config->ranks, store);
  if (!groups) return groups.why();
  // Whoever ends is asked for nothing more: everything is loaded.
  if (hardens) {
    lock_heaps();
    if (auto closed = filter_calls(new_code::refused); !closed) return closed;
  }
  return serve_rank((*model)->weights(), *config, *std::move(groups), link.spin);
}

}  // namespace

int run_rank_process(uint32_t rank) {
  // A stopped one would not notice that its parent has ended.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const wire<schema::StartEngine> order{.frame = read_order(frame_bytes_max<schema::StartEngine>)};
  result<void> done = fail("there is no order; engines start ranks, not people");
  if (!order.frame.empty()) {
    end_with_parent();
    auto read =
        unpack(order, [&](schema::StartEngine::Reader r) { done = serve(rank, r.getSpec()); });
    if (!read) done = read;
  }
  if (!done) leave_last_words(done.why().text);
  ::_exit(done ? 0 : 1);
}

}  // namespace lethe
