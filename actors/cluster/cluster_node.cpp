#include "actors/cluster/cluster_node.hpp"

#include "actors/cluster/directory.hpp"
#include "actors/cluster/face.hpp"
#include "actors/cluster/node_keys.hpp"
#include "actors/cluster/open_gateway.hpp"
#include "actors/cluster/open_service.hpp"
#include "actors/cluster/scheduler.hpp"
#include "actors/cluster/thread_house.hpp"
#include "actors/cluster/tls_peers.hpp"
#include "runtime/config/api_keys.hpp"

#include <future>

namespace lethe {

namespace {

// Between the end of a supervisor and the next: doubled each time that it soon ends again.
constexpr std::chrono::milliseconds pause_least{250}, pause_most{5'000};

constexpr std::chrono::seconds control_patience{30};
constexpr uint32_t gateway_connections_max = 256;               // of relays
constexpr size_t gateway_unpaid_bytes_max = size_t{256} << 20;  // of requests, all together
constexpr size_t gateway_overhead = size_t{64} << 10;           // of both outer layers

constexpr uint32_t leading_host = 0;

telemetry_event joined_or(schema::JoinRefusal why, uint32_t host) {
  using schema::Event;
  using schema::Fault;
  switch (why) {
    case schema::JoinRefusal::NONE:
      return telemetry_event(Event::JOINED, leading_host);
    case schema::JoinRefusal::UNKNOWN_HOST:
      return telemetry_event(Event::NOT_JOINED, Fault::UNKNOWN_HOST);
    case schema::JoinRefusal::OTHER_PROCESS:
      return telemetry_event(Event::NOT_JOINED, Fault::OTHER_PROCESS, host);
    case schema::JoinRefusal::OTHER_PROGRAM:
      return telemetry_event(Event::NOT_JOINED, Fault::OTHER_PROGRAM);
    case schema::JoinRefusal::NO_MESSAGE:
      break;
  }
  return telemetry_event(Event::NOT_JOINED, Fault::NO_MESSAGE);
}

using control_promise = std::promise<result<wire<schema::ControlAnswer>>>;

/// Asks, and hears of it where the directory breaks over the question, which answers nothing.
void ask_once(caf::event_based_actor* self, directory_actor directory,
              wire<schema::ControlAsk> what, std::chrono::seconds patience,
              std::shared_ptr<control_promise> said) {
  be_quiet(self);
  auto end = [self, said, whom = directory.address()](result<wire<schema::ControlAnswer>> how) {
    said->set_value(std::move(how));
    self->demonitor(whom);  // it would keep our memory
    self->quit();
  };
  self->monitor(directory);
  self->set_down_handler([end](const caf::down_msg&) { end(fail("the directory is gone")); });
  self->request(directory, patience, what)
      .then([end](const wire<schema::ControlAnswer>& m) { end(m); },
            [end](const caf::error&) { end(fail("the directory does not answer")); });
}

/// Paths absolute, as every host reads them.
cluster_config absolute(const cluster_config& from) {
  auto c = cluster_config::of(from.get());
  auto path = std::filesystem::absolute(from.resolve(from.get().getModel().getPath().cStr()));
  c.edit().getModel().setPath(path.lexically_normal().string());
  return c;
}

/// A leader hears its hosts, the others their leader.
void allow_hosts(const cluster_layout& layout) {
  std::vector<std::string> names;
  for (const auto& h : layout.hosts) names.push_back(h.name);
  allow_peers(std::move(names));
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
  auto hosts = config.layout.hosts;
  place_ = uint32_t(std::ranges::find(hosts, host, &placed_host::name) - hosts.begin());
  leads_ = config.layout.hosts.front().name == host;
  separate_ = c.getEngines().getProcesses() != schema::Processes::SHARED;
  trace_ = std::make_unique<tracer>(trace_config_of(c.getTrace()));
  if (auto ok = begin_network(config); !ok) return ok.why();
  if (leads_) {
    if (auto ok = begin_leader(config); !ok) return ok.why();
    if (auto ok = begin_face(config); !ok) return ok.why();
    if (auto ok = begin_gateway(config); !ok) return ok.why();
  }
  keeper_ = std::thread([this] { keep_supervisor(); });
  auto control =
      control_server::start(leads_ ? name_ : name_ + "-" + host_, [this](const auto& what) {
        auto answer = ask(what, control_patience);
        if (answer) return *std::move(answer);
        return pack<schema::ControlAnswer>({}, [&](auto b) { b.setRefused(answer.why().text); });
      });
  if (!control) return control.why();
  control_ = *std::move(control);
  return {};
}

/// No network where nobody else is, nor may ever come.
result<void> cluster_node::begin_network(const checked_config& config) {
  auto c = config.config.get();
  node_options options{.heartbeat_ms = c.getHealth().getHeartbeatMs(),
                       .lost_after_ms = c.getHealth().getLostAfterMs()};
  auto hosts = c.getHosts();
  bool others_may_come =
      hosts.size() > 1 || (hosts.size() == 1 && hosts[0].getPort() != 0 && c.getTls().hasFolder());
  if (others_may_come) {
    program_ = program_digest();
    if (program_ == hash32{})
      return fail(
          "the program that runs here can't be read, so other hosts can't be told to run the "
          "same; let this user read its file");
  }
  if (others_may_come || separate_) {
    auto keys = keys_for(config, host_);
    if (!keys) return keys.why();
    options.tls = tls_ = *std::move(keys);
  }
  auto made = node_config::make(options);
  if (!made) return made.why();
  config_ = *std::move(made);
  sys_ = std::make_unique<caf::actor_system>(*config_);
  at_ = {.address = config.layout.hosts.front().address,
         .port = hosts.size() > 0 ? hosts[0].getPort() : uint16_t{0},
         .leader = config.layout.hosts.front().name};
  if (leads_)
    allow_hosts(config.layout);
  else
    allow_peers({at_.leader});
  return {};
}

result<void> cluster_node::begin_leader(const checked_config& config) {
  auto plan = cluster_plan::make(absolute(config.config).get(), machine::here());
  if (!plan) return plan.why();
  scheduler_ = sys_->spawn(scheduler, trace_.get());
  directory_ = sys_->spawn(
      directory, *std::move(plan), scheduler_, trace_.get(),
      directory_setup{
          .program = program_, .down = [this] { ended_ = true; }, .changed = allow_hosts});
  watch(caf::actor_cast<caf::actor>(scheduler_), schema::Part::SCHEDULER);
  watch(caf::actor_cast<caf::actor>(directory_), schema::Part::DIRECTORY);
  if (tls_) {
    auto port = publish(*sys_, directory_, at_.address, at_.port);
    if (!port) return port.why();
    at_.port = *port;
  }
  return {};
}

/// One that ends before this process does has broken.
void cluster_node::watch(const caf::actor& who, schema::Part part) {
  actors_.push_back(who);
  who->attach_functor([this, part](const caf::error& why) {
    if (stopping_) return;
    std::lock_guard guard(lock_);
    if (!broken_) broken_.emplace(schema::Event::BROKE, part, end_named(why_ended(why)));
  });
}

std::optional<telemetry_event> cluster_node::broken() const {
  std::lock_guard guard(lock_);
  return broken_;
}

caf::actor cluster_node::begin_supervisor(const directory_actor& directory) {
  supervisor_setup setup{
      .host = host_, .has = machine::here(), .program = program_, .trace = trace_.get()};
  if (separate_)
    setup.house = std::make_shared<process_house>(at_, *tls_);
  else
    setup.house = std::make_shared<thread_house>(*sys_, trace_.get());
  if (!leads_) setup.left = [this] { ended_ = true; };
  if (!leads_) setup.heard = [this](schema::JoinRefusal why) { stand(joined_or(why, place_)); };
  return caf::actor_cast<caf::actor>(sys_->spawn(supervisor, std::move(setup), directory));
}

/// Its own, or the one that the leader published; none while it isn't reached.
directory_actor cluster_node::find_directory() {
  if (leads_) return directory_;
  auto found = connect(*sys_, at_.address, at_.port);
  if (!found.who) {
    stand(telemetry_event(schema::Event::NOT_JOINED, found.fault));
    return {};
  }
  std::lock_guard guard(lock_);
  return directory_ = found.who;
}

/// A supervisor ends when it breaks or when it loses the directory; the next one begins anew.
void cluster_node::keep_supervisor() {
  using std::chrono::milliseconds;
  milliseconds pause = pause_least;
  while (!stopping_) {
    auto begun = std::chrono::steady_clock::now();
    if (auto found = find_directory()) {
      await_end_of(begin_supervisor(found));
      bool soon = std::chrono::steady_clock::now() - begun < 10 * pause_most;
      pause = soon ? std::min(2 * pause, pause_most) : pause_least;
    }
    for (milliseconds waited{0}; waited < pause && !stopping_; waited += milliseconds(50))
      std::this_thread::sleep_for(milliseconds(50));
  }
}

void cluster_node::await_end_of(const caf::actor& own) {
  caf::scoped_actor self(*sys_);
  self->monitor(own);
  bool lost = false;
  while (!lost && !stopping_)
    self->receive(
        [&](const caf::down_msg& d) {
          lost = true;
          if (d.reason == caf::exit_reason::remote_link_unreachable)
            stand(telemetry_event(schema::Event::LEADER_LOST, leading_host));
        },
        caf::after(std::chrono::milliseconds(100)) >> [] {});
  caf::anon_send_exit(own, caf::exit_reason::user_shutdown);
  std::lock_guard guard(lock_);
  if (!leads_) directory_ = nullptr;
}

void cluster_node::stand(const telemetry_event& how) {
  std::lock_guard guard(lock_);
  standing_ = how;
}

std::optional<telemetry_event> cluster_node::standing() const {
  std::lock_guard guard(lock_);
  return standing_;
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
  auto keys = read_api_keys(config.config);
  if (!keys) return keys.why();
  setup.api_keys = *std::move(keys);
  auto http = http_server::start(where, {}, *queue_);
  if (!http) return http.why();
  http_ = *std::move(http);
  for (const auto& l : http_->bound()) listeners_.push_back({l.role, "http://" + l.address});
  auto made =
      caf::actor_cast<caf::actor>(sys_->spawn(face, std::move(setup), scheduler_, directory_));
  made->attach_functor([queue = queue_] { queue->close(); });
  watch(made, schema::Part::FACE);
  return {};
}

result<void> cluster_node::begin_gateway(const checked_config& config) {
  if (!config.config.get().hasGateway()) return {};
  auto g = config.config.get().getGateway();
  auto setup = open_gateway(config);
  if (!setup) return setup.why();
  setup->trace = trace_.get();
  setup->queue = gateway_queue_ = std::make_shared<face_queue>();
  http_listener at{"gateway", g.getListen(),
                   identity_at(config.config, g.getCertificate(), g.getKey())};
  http_limits bounds{.body_bytes_max = limits::sealed_request_bytes_max + gateway_overhead,
                     .bodies_bytes_max = gateway_unpaid_bytes_max,
                     .arena_bytes_more = 2 * limits::sealed_request_bytes_max,
                     .connections_max = gateway_connections_max};
  auto http = http_server::start({&at, 1}, bounds, *gateway_queue_);
  if (!http) return http.why();
  gateway_http_ = *std::move(http);
  const auto& bound = gateway_http_->bound().front();
  listeners_.push_back({bound.role, (at.tls ? "https://" : "http://") + bound.address});
  auto made =
      caf::actor_cast<caf::actor>(sys_->spawn(gateway, *std::move(setup), scheduler_, directory_));
  made->attach_functor([queue = gateway_queue_] { queue->close(); });
  watch(made, schema::Part::GATEWAY);
  return {};
}

result<wire<schema::ControlAnswer>> cluster_node::ask(const wire<schema::ControlAsk>& what,
                                                      std::chrono::seconds patience) {
  directory_actor directory;
  {
    std::lock_guard guard(lock_);
    directory = directory_;
  }
  if (!directory) return fail("{}:{}: the leading host is not reached", at_.address, at_.port);
  auto said = std::make_shared<control_promise>();
  auto heard = said->get_future();
  sys_->spawn(ask_once, directory, what, patience, said);
  return heard.get();
}

result<void> cluster_node::leave(schema::Down how) {
  if (!leads_ && how == schema::Down::NOW) {
    ended_ = true;
    return {};
  }
  auto what = pack<schema::ControlAsk>({}, [&](schema::ControlAsk::Builder b) {
    if (leads_)
      b.setDown(how);
    else
      b.setHostLeaves(host_);
  });
  auto answer = ask(what, std::chrono::seconds(5));
  std::string refused;
  if (answer) {
    auto read = unpack(*answer, [&](schema::ControlAnswer::Reader r) {
      if (r.isRefused()) refused = r.getRefused();
    });
    if (!read) refused = read.why().text;
  } else {
    refused = answer.why().text;
  }
  if (refused.empty()) return {};
  if (leads_) return fail("{}", refused);
  // Nobody can tell it to end, and what ran here has ended with the leader's link.
  ended_ = true;
  return {};
}

void cluster_node::end() {
  if (control_) control_->stop();
  stopping_ = true;
  if (keeper_.joinable()) keeper_.join();
  for (auto* http : {http_.get(), gateway_http_.get()}) {
    if (!http) continue;
    http->stop_accepting();
    for (int i = 0; i < 200 && http->numbers().connections > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const auto& queue : {queue_, gateway_queue_})
    if (queue) queue->close();
  for (const auto& a : actors_) caf::anon_send_exit(a, caf::exit_reason::user_shutdown);
  actors_.clear();
  directory_ = nullptr;
  scheduler_ = nullptr;
  sys_.reset();   // waits for all actors, they for the engines, and CAF for who ever asked it
  http_.reset();  // they answer through these
  gateway_http_.reset();
}

cluster_node::~cluster_node() {
  end();
  control_.reset();
}

}  // namespace lethe
