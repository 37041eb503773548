#include "actors/cluster/cluster_node.hpp"

#include "actors/cluster/directory.hpp"
#include "actors/cluster/face.hpp"
#include "actors/cluster/scheduler.hpp"
#include "actors/cluster/thread_house.hpp"
#include "runtime/base/mapped_file.hpp"

namespace lethe {

namespace {

trace_mode mode_of(schema::TraceMode m) {
  switch (m) {
    case schema::TraceMode::OFF:
      return trace_mode::off;
    case schema::TraceMode::ALL:
      return trace_mode::all;
    case schema::TraceMode::ALLOWED:
      break;
  }
  return trace_mode::allowed;
}

/// What says nothing of a single token: not pieces of answers, nor the credit for them.
std::vector<uint64_t> allowed_types() {
  return {capnp::typeId<schema::Place>(),       capnp::typeId<schema::Placed>(),
          capnp::typeId<schema::Submit>(),      capnp::typeId<schema::Cancel>(),
          capnp::typeId<schema::Release>(),     capnp::typeId<schema::Lost>(),
          capnp::typeId<schema::EngineState>(), capnp::typeId<schema::Adopted>(),
          capnp::typeId<schema::Drain>(),       capnp::typeId<schema::Join>(),
          capnp::typeId<schema::Joined>(),      capnp::typeId<schema::StartEngine>(),
          capnp::typeId<schema::KillEngine>(),  capnp::typeId<schema::EngineEnded>(),
          capnp::typeId<schema::Leave>()};
}

/// Paths absolute, as every host reads them.
cluster_config absolute(const cluster_config& from) {
  auto c = cluster_config::of(from.get());
  auto path = std::filesystem::absolute(from.resolve(from.get().getModel().getPath().cStr()));
  c.edit().getModel().setPath(path.lexically_normal().string());
  return c;
}

result<std::vector<std::string>> read_keys(const cluster_config& config) {
  std::string file = config.get().getListen().getApiKeys();
  std::vector<std::string> keys;
  if (file.empty()) return keys;
  auto text = read_text(config.resolve(file), size_t{1} << 20);
  if (!text) return text.why();
  for (size_t at = 0; at < text->size();) {
    size_t end = std::min(text->find('\n', at), text->size());
    if (end > at) keys.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  if (keys.empty()) return fail("{}: holds no key; one a line is expected", file);
  return keys;
}

}  // namespace

result<std::unique_ptr<cluster_node>> cluster_node::start(const checked_config& config,
                                                          const std::string& host) {
  std::unique_ptr<cluster_node> node(new cluster_node);
  if (auto ok = node->begin(config, host); !ok) return ok.why();
  return node;
}

result<void> cluster_node::begin(const checked_config& config, const std::string& host) {
  auto c = config.config.get();
  name_ = c.getName();
  host_ = host;
  leads_ = config.layout.hosts.front().name == host;
  trace_ = std::make_unique<tracer>(tracer_config{.mode = mode_of(c.getTrace().getMode()),
                                                  .records = c.getTrace().getRecords(),
                                                  .allowed_types = allowed_types()});
  auto made = node_config::make({.heartbeat_ms = c.getHealth().getHeartbeatMs(),
                                 .lost_after_ms = c.getHealth().getLostAfterMs()});
  if (!made) return made.why();
  config_ = *std::move(made);
  sys_ = std::make_unique<caf::actor_system>(*config_);
  if (auto ok = begin_leader(config); !ok) return ok.why();
  begin_supervisor();
  if (auto ok = begin_face(config); !ok) return ok.why();
  auto control = control_server::start(name_, [this](const wire<schema::ControlAsk>& what) {
    auto answer = ask(what);
    if (answer) return *std::move(answer);
    return pack<schema::ControlAnswer>({}, [&](auto b) { b.setRefused(answer.why().text); });
  });
  if (!control) return control.why();
  control_ = *std::move(control);
  return {};
}

result<void> cluster_node::begin_leader(const checked_config& config) {
  auto plan = cluster_plan::make(absolute(config.config).get(), machine::here());
  if (!plan) return plan.why();
  scheduler_ = sys_->spawn(scheduler, trace_.get());
  directory_ = sys_->spawn(directory, *std::move(plan), scheduler_, trace_.get(),
                           directory_events{.down = [this] { ended_ = true; }});
  actors_.push_back(caf::actor_cast<caf::actor>(scheduler_));
  actors_.push_back(caf::actor_cast<caf::actor>(directory_));
  return {};
}

void cluster_node::begin_supervisor() {
  supervisor_setup setup{.host = host_,
                         .has = machine::here(),
                         .house = std::make_shared<thread_house>(*sys_, trace_.get()),
                         .trace = trace_.get()};
  actors_.push_back(
      caf::actor_cast<caf::actor>(sys_->spawn(supervisor, std::move(setup), directory_)));
}

result<void> cluster_node::begin_face(const checked_config& config) {
  auto listen = config.config.get().getListen();
  std::vector<http_listener> where;
  if (listen.getApi().size() > 0) where.push_back({"api", listen.getApi()});
  face_setup setup{.queue = queue_ = std::make_shared<face_queue>(),
                   .api_listener = where.empty() ? UINT32_MAX : 0,
                   .trace = trace_.get()};
  if (listen.getMetrics().size() > 0) where.push_back({"metrics", listen.getMetrics()});
  if (where.empty()) return {};
  auto keys = read_keys(config.config);
  if (!keys) return keys.why();
  setup.api_keys = *std::move(keys);
  auto http = http_server::start(where, {}, *queue_);
  if (!http) return http.why();
  http_ = *std::move(http);
  for (const auto& l : http_->bound()) listeners_.push_back({l.role, "http://" + l.address});
  actors_.push_back(
      caf::actor_cast<caf::actor>(sys_->spawn(face, std::move(setup), scheduler_, directory_)));
  return {};
}

result<wire<schema::ControlAnswer>> cluster_node::ask(const wire<schema::ControlAsk>& what) {
  caf::scoped_actor self(*sys_);
  result<wire<schema::ControlAnswer>> said = fail("the directory does not answer");
  self->request(directory_, std::chrono::seconds(30), what)
      .receive([&](const wire<schema::ControlAnswer>& m) { said = m; }, [](caf::error&) {});
  return said;
}

cluster_node::~cluster_node() {
  control_.reset();
  if (http_) {
    http_->stop_accepting();
    for (int i = 0; i < 200 && http_->numbers().connections > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (queue_) queue_->close();
  http_.reset();
  for (const auto& a : actors_) caf::anon_send_exit(a, caf::exit_reason::user_shutdown);
  actors_.clear();
  directory_ = nullptr;
  scheduler_ = nullptr;
  sys_.reset();  // waits for all actors, and they for the engines
}

}  // namespace lethe
