#pragma once

#include "actors/cluster/clerk.hpp"
#include "actors/cluster/service.hpp"
#include "runtime/cluster/cluster_plan.hpp"

namespace lethe {

struct service_setup {
  std::shared_ptr<service> serves;
  std::string name;
  std::shared_ptr<const cluster_config> config;  // as it runs
  tracer* trace = nullptr;
  uint32_t drain_ms = 30'000;
  std::function<void()> down;  // it has left
};

/// Owns a service, tells its operator what it counts, and ends it.
class service_state {
 public:
  const char* name = "service";

  void begin(service_actor::stateful_pointer<service_state> self, service_setup setup);
  caf::result<wire<schema::ControlAnswer>> control(const wire<schema::ControlAsk>& m);
  void on_tick();

 private:
  void write_status(schema::Status::Builder b) const;
  void leave(schema::Down how);

  service_actor::stateful_pointer<service_state> self_ = nullptr;
  service_setup setup_;
  clerk clerk_;
  uint64_t begun_ns_ = 0, leave_by_ns_ = 0;  // 0: it stays
};

service_actor::behavior_type service_host(service_actor::stateful_pointer<service_state> self,
                                          service_setup setup);

}  // namespace lethe
