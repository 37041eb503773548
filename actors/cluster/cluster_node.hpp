#pragma once

#include "actors/cluster/control_socket.hpp"
#include "actors/cluster/face_queue.hpp"
#include "actors/cluster/node.hpp"
#include "actors/cluster/process_house.hpp"
#include "actors/cluster/running_part.hpp"
#include "actors/cluster/supervisor.hpp"
#include "runtime/config/check_config.hpp"
#include "runtime/trace/tracer.hpp"

namespace lethe {

/// This host's part of a cluster, from start to end. The first host of the file leads: it holds
/// the directory, the scheduler and the HTTP face.
class cluster_node final : public running_part {
 public:
  /// `config` was checked. `host` is one of its hosts.
  static result<std::unique_ptr<cluster_node>> start(const checked_config& config,
                                                     const std::string& host);
  ~cluster_node() override;

  const std::vector<bound_listener>& listeners() const override { return listeners_; }
  result<wire<schema::ControlAnswer>> ask(const wire<schema::ControlAsk>& what,
                                          std::chrono::seconds patience) override;
  /// The leader ends the cluster; another host drains its engines and goes by itself.
  result<void> leave(schema::Down how) override;
  bool ended() const override { return ended_; }
  void end() override;
  bool leads() const override { return leads_; }
  /// How a host that doesn't lead stands with the one that does; none on that one itself.
  std::optional<telemetry_event> standing() const override;
  /// Why the leading host can't go on: its directory, scheduler or face broke. Each holds what the
  /// others believe, so they end together, and the process with them.
  std::optional<telemetry_event> broken() const override;

 private:
  cluster_node() = default;
  result<void> begin(const checked_config& config, const std::string& host);
  result<void> begin_leader(const checked_config& config);
  result<void> begin_face(const checked_config& config);
  result<void> begin_gateway(const checked_config& config);
  result<void> begin_network(const checked_config& config);
  caf::actor begin_supervisor(const directory_actor& directory);
  void watch(const caf::actor& who, schema::Part part);
  directory_actor find_directory();
  void keep_supervisor();
  void await_end_of(const caf::actor& own);
  void stand(const telemetry_event& how);

  std::string name_, host_;
  uint32_t place_ = 0;  // of the host, among the file's
  bool leads_ = false, separate_ = false;
  hash32 program_{};  // its digest, where other hosts may come
  directory_address at_;
  std::optional<node_tls> tls_;
  std::unique_ptr<tracer> trace_;
  std::unique_ptr<node_config> config_;
  std::unique_ptr<caf::actor_system> sys_;
  std::shared_ptr<face_queue> queue_;
  std::unique_ptr<http_server> http_;
  std::shared_ptr<face_queue> gateway_queue_;
  std::unique_ptr<http_server> gateway_http_;
  std::unique_ptr<control_server> control_;
  std::vector<bound_listener> listeners_;
  std::vector<caf::actor> actors_;
  directory_actor directory_;
  std::optional<telemetry_event> standing_;
  scheduler_actor scheduler_;
  std::atomic<bool> ended_{false}, stopping_{false};
  mutable std::mutex lock_;  // of directory_ and standing_; a follower finds and loses its leader
  std::optional<telemetry_event> broken_;  // under lock_, too
  std::thread keeper_;
};

}  // namespace lethe
