#pragma once

#include <atomic>
#include <memory>

#include "actors/cluster/control_socket.hpp"
#include "actors/cluster/node.hpp"
#include "actors/cluster/running_part.hpp"
#include "actors/cluster/service.hpp"
#include "runtime/config/check_config.hpp"
#include "runtime/trace/tracer.hpp"

namespace lethe {

/// An issuer or a relay in a process of its own. Its actor holds it and answers its operator.
class service_node final : public running_part {
 public:
  /// `config` was checked and is a service's.
  static result<std::unique_ptr<service_node>> start(const checked_config& config);
  ~service_node() override;

  const std::vector<bound_listener>& listeners() const override { return listeners_; }
  result<wire<schema::ControlAnswer>> ask(const wire<schema::ControlAsk>& what,
                                          std::chrono::seconds patience) override;
  result<void> leave(schema::Down how) override;
  bool ended() const override { return ended_; }
  void end() override;

 private:
  service_node() = default;

  std::unique_ptr<tracer> trace_;
  std::unique_ptr<node_config> config_;
  std::unique_ptr<caf::actor_system> sys_;
  service_actor host_;
  std::unique_ptr<control_server> control_;
  std::vector<bound_listener> listeners_;
  std::atomic<bool> ended_{false};
};

}  // namespace lethe
