#include "actors/cluster/process_house.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "actors/cluster/child_process.hpp"
#include "actors/cluster/open_engine.hpp"
#include "actors/cluster/rank_device.hpp"
#include "actors/cluster/tls_peers.hpp"
#include "runtime/hardening/harden.hpp"
#include "runtime/telemetry/telemetry_log.hpp"

namespace lethe {

process_house::~process_house() {
  {
    std::lock_guard guard(lock_);
    for (auto [id, pid] : running_) ::kill(pid, SIGKILL);
  }
  for (auto& w : waiters_) w.thread.join();
}

/// Of children that ended: each would keep its stack.
void process_house::join_waiters() {
  std::erase_if(waiters_, [](waiter& w) {
    if (!w.done) return false;
    w.thread.join();
    return true;
  });
}

std::vector<std::string> words_of(const node_tls& tls) {
  return {"--certificate", tls.certificate.string(), "--key", tls.key.string(),
          "--authority",   tls.authority.string()};
}

result<void> process_house::start(const wire<schema::StartEngine>& order, uint16_t id,
                                  directory_actor, ended then) {
  return begin(
      {"lethe", "engine-process", "--directory",
       fmt::format("{}:{}", directory_.address, directory_.port), "--leader", directory_.leader},
      order.frame, id, std::move(then));
}

result<void> process_house::start_ranks(const wire<schema::StartRanks>& order, uint32_t first,
                                        uint16_t id, ended then) {
  return begin({"lethe", "rank-process", std::to_string(first)}, order.frame, id, std::move(then));
}

result<void> process_house::begin(std::vector<std::string> words,
                                  const std::vector<std::byte>& order, uint16_t id, ended then) {
  auto held = order_in_memory(order);
  if (!held) return held.why();
  auto memory = std::make_shared<const owned_fd>(*std::move(held));
  for (auto& word : words_of(tls_)) words.push_back(std::move(word));
  auto pid = start_child(words, memory->get());
  if (!pid) return pid.why();
  join_waiters();
  std::lock_guard guard(lock_);
  running_[id] = *pid;
  auto& waiter = waiters_.emplace_back();
  waiter.thread = std::thread([this, id, child = *pid, memory, then = std::move(then), &waiter] {
    const auto how = await_end(child);
    reap(id, child);
    then(how_it_ended(how, memory->get()));
    waiter.done = true;
  });
  return {};
}

/// The pid stays taken until the child is reaped, so nobody else can be killed in its place.
void process_house::reap(uint16_t id, int pid) {
  std::lock_guard guard(lock_);
  auto found = running_.find(id);
  if (found != running_.end() && found->second == pid) running_.erase(found);
  ::waitpid(pid, nullptr, 0);
}

void process_house::kill(uint16_t id) {
  std::lock_guard guard(lock_);
  auto found = running_.find(id);
  if (found != running_.end()) ::kill(found->second, SIGKILL);
}

namespace {

/// Everything is loaded; its parent says what can't be locked.
result<void> close_engine() {
  lock_heaps();
  return filter_calls(new_code::refused);
}

int refuse_to_run(const std::string& why) {
  leave_last_words(why);
  say_once(telemetry_event(schema::Event::ENGINE_CANNOT_RUN));
  return 1;
}

}  // namespace

int run_engine_process(const directory_address& at, const node_tls& tls, devices& here) {
  const wire<schema::StartEngine> order{.frame = read_order(frame_bytes_max<schema::StartEngine>)};
  if (order.frame.empty())
    return refuse_to_run("there is no order; `lethe up` starts engines, not people");
  // The supervisor that started this process misses the directory in time, and ends it.
  node_options options{.tls = tls};
  tracer_config records;
  bool hardens = true;
  result<void> prepared;
  auto read = unpack(order, [&](schema::StartEngine::Reader r) {
    prepared = prepare_device(r.getSpec(), 0, here);
    hardens = r.getSpec().getProfile() != schema::Profile::LAB;
    options.heartbeat_ms = r.getSpec().getHealth().getHeartbeatMs();
    records = trace_config_of(r.getSpec().getTrace());
  });
  if (!read) return refuse_to_run(read.why().text);
  if (!prepared) return refuse_to_run(prepared.why().text);
  end_with_parent();
  allow_peers({at.leader});
  if (hardens)
    if (auto hard = refuse_dumps(); !hard) return refuse_to_run(hard.why().text);
  auto config = node_config::make(options);
  if (!config) return refuse_to_run(config.why().text);
  tracer trace(std::move(records));
  caf::actor_system sys(**config);
  auto directory = connect(sys, at.address, at.port);
  // CAF would wait for what it began.
  if (!directory.who)
    ::_exit(
        refuse_to_run(rendered(telemetry_event(schema::Event::NOT_JOINED, directory.fault), {})));
  auto opener = std::make_shared<engine_opener>(rank_host{tls, here});
  auto setup = setup_of(order, opener, &trace);
  setup.open = [open = std::move(setup.open), hardens](const opening& told) {
    auto opened = open(told);
    if (opened && hardens)
      if (auto closed = close_engine(); !closed) opened = closed.why();
    if (!opened) leave_last_words(opened.why().text);
    return opened;
  };
  auto engine = sys.spawn<caf::detached>(run_engine, std::move(setup), directory.who);
  caf::scoped_actor self(sys);
  self->monitor(engine);
  self->monitor(directory.who);
  bool served = false;
  self->receive([&](const caf::down_msg& d) {
    served = d.source == engine.address() && d.reason == caf::exit_reason::normal;
    if (d.reason == caf::sec::runtime_error) leave_last_words(why_ended(d.reason));
  });
  // Words wait for the network: an answer to later ones says that the engine's last were read.
  auto status = pack<schema::ControlAsk>({}, [](schema::ControlAsk::Builder b) { b.setStatus(); });
  if (!served)
    self->request(directory.who, std::chrono::seconds(2), status)
        .receive([](const wire<schema::ControlAnswer>&) {}, [](caf::error&) {});
  // Whatever it still held ends with the process.
  std::fflush(nullptr);
  ::_exit(served ? 0 : 1);
}

}  // namespace lethe
