#include "actors/cluster/service_node.hpp"

#include <future>

#include "actors/cluster/open_service.hpp"
#include "actors/cluster/service_host.hpp"

namespace lethe {

namespace {

constexpr std::chrono::seconds control_patience{30};

}  // namespace

result<std::unique_ptr<service_node>> service_node::start(const checked_config& config) {
  auto c = config.config.get();
  auto serves = open_service(config);
  if (!serves) return serves.why();
  std::unique_ptr<service_node> node(new service_node);
  for (const auto& l : (*serves)->bound())
    node->listeners_.push_back({l.role, (l.tls ? "https://" : "http://") + l.address});
  node->trace_ = std::make_unique<tracer>(tracer_config{.mode = trace_mode::off});
  auto made = node_config::make({.threads = 1});
  if (!made) return made.why();
  node->config_ = *std::move(made);
  node->sys_ = std::make_unique<caf::actor_system>(*node->config_);
  service_setup setup{.serves = *std::move(serves),
                      .name = c.getName(),
                      .config = std::make_shared<cluster_config>(cluster_config::of(c)),
                      .trace = node->trace_.get(),
                      .drain_ms = c.getHealth().getDrainMs(),
                      .down = [to = node.get()] { to->ended_ = true; }};
  node->host_ = node->sys_->spawn(service_host, std::move(setup));
  auto control = control_server::start(c.getName(), [to = node.get()](const auto& what) {
    auto answer = to->ask(what, control_patience);
    if (answer) return *std::move(answer);
    return pack<schema::ControlAnswer>({}, [&](auto b) { b.setRefused(answer.why().text); });
  });
  if (!control) return control.why();
  node->control_ = *std::move(control);
  return node;
}

result<wire<schema::ControlAnswer>> service_node::ask(const wire<schema::ControlAsk>& what,
                                                      std::chrono::seconds patience) {
  caf::scoped_actor self(*sys_);
  result<wire<schema::ControlAnswer>> said = fail("the service does not answer");
  self->request(host_, patience, what)
      .receive([&](const wire<schema::ControlAnswer>& m) { said = m; }, [](caf::error&) {});
  return said;
}

result<void> service_node::leave(schema::Down how) {
  auto what = pack<schema::ControlAsk>({}, [&](schema::ControlAsk::Builder b) { b.setDown(how); });
  auto answer = ask(what, std::chrono::seconds(5));
  if (answer) return {};
  return answer.why();
}

void service_node::end() {
  if (control_) control_->stop();
  if (host_)
    caf::anon_send_exit(caf::actor_cast<caf::actor>(host_), caf::exit_reason::user_shutdown);
  host_ = nullptr;
  sys_.reset();
}

service_node::~service_node() {
  end();
  control_.reset();
}

}  // namespace lethe
