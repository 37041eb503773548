#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <map>
#include <thread>

#include "actors/cli/ask.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/detached_start.hpp"
#include "actors/cluster/cluster_node.hpp"
#include "actors/cluster/service_node.hpp"
#include "runtime/hardening/harden.hpp"
#include "runtime/telemetry/telemetry_log.hpp"

namespace lethe {

namespace {

constexpr std::chrono::seconds end_patience{15};

/// Signals are taken by the loop below and by nothing else; threads inherit the mask.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

/// Names that the file gave; no others are ever said.
telemetry_names names_of(const checked_config& c) {
  auto model = c.config.get().getModel();
  telemetry_names names{.cluster = c.config.get().getName()};
  auto path = c.config.resolve(model.getPath().cStr());
  if (!path.has_filename()) path = path.parent_path();
  names.model =
      model.getName().size() > 0 ? std::string(model.getName().cStr()) : path.stem().string();
  for (const auto& h : c.layout.hosts) names.hosts.push_back(h.name);
  return names;
}

schema::Event event_of(schema::Phase phase, bool failed) {
  using schema::Event;
  constexpr Event events[] = {Event::ENGINE_AWAITS_HOST, Event::ENGINE_STARTS, Event::ENGINE_LOADS,
                              Event::ENGINE_READY,       Event::ENGINE_DRAINS, Event::ENGINE_GONE,
                              Event::ENGINE_FAILED,      Event::ENGINE_PARKED};
  if (phase == schema::Phase::WAITING && failed) return Event::ENGINE_AWAITS_TURN;
  return events[std::min(size_t(phase), std::size(events) - 1)];
}

schema::Event event_of_service(std::string_view role) {
  if (role == "issuer") return schema::Event::ISSUER_READY;
  return role == "relay" ? schema::Event::RELAY_READY : schema::Event::WITNESS_READY;
}

/// Says what changed since it looked last: a line for each phase, and progress in place.
class live_view {
 public:
  explicit live_view(telemetry_names names) : log_(std::move(names), isatty(STDERR_FILENO) == 1) {}

  void show(schema::Status::Reader s) {
    for (auto e : s.getEngines()) show_engine(e);
    uint32_t wanted = s.getWanted();
    bool whole = wanted > 0 ? ready_of(s) >= wanted : s.getServices().size() > 0;
    bool news = whole && (!whole_ || wanted > wanted_);  // one more may be ready between two looks
    if (news && wanted == 0)
      say(event_of_service(s.getServices()[0].getRole().cStr()));
    else if (news)
      say(schema::Event::READY, ready_of(s), wanted);
    whole_ = whole;
    wanted_ = wanted;
  }

  template <telemetry_value... Values>
  void say(schema::Event what, Values... values) {
    log_.say(telemetry_event(what, values...));
  }
  void say(const telemetry_event& event) { log_.say(event); }

 private:
  static uint32_t ready_of(schema::Status::Reader s) {
    uint32_t n = 0;
    for (auto e : s.getEngines()) n += e.getState().getPhase() == schema::Phase::READY;
    return n;
  }

  void show_engine(schema::EngineStatus::Reader e) {
    auto state = e.getState();
    auto& known = known_[e.getSlot()];
    std::pair now{state.getPhase(), state.getEpoch()};
    if (now != known) {
      known = now;
      std::string_view reason = state.getReason().cStr();
      say(event_of(now.first, !reason.empty()), e.getSlot(),
          log_.names().place_of(e.getHost().cStr()), end_named(reason));
    }
    if (state.getPhase() != schema::Phase::LOADING || state.getTotal() == 0) return;
    log_.show_progress(telemetry_event(schema::Event::ENGINE_LOADED, e.getSlot(), state.getDone(),
                                       state.getTotal()));
  }

  telemetry_log log_;
  std::map<uint16_t, std::pair<schema::Phase, uint32_t>> known_;
  bool whole_ = false;
  uint32_t wanted_ = 0;
};

wire<schema::ControlAsk> ask_status() {
  return pack<schema::ControlAsk>({}, [](schema::ControlAsk::Builder b) { b.setStatus(); });
}

/// The engines that a host should have, as far as they have come.
struct own_engines {
  uint32_t coming = 0, parked = 0;
};

own_engines engines_on(const std::string& host, schema::Status::Reader s) {
  own_engines n;
  if (s.getEngines().size() == 0) n.coming = s.getWanted();  // of a service none
  for (auto e : s.getEngines()) {
    if (e.getHost() != host) continue;
    switch (e.getState().getPhase()) {
      case schema::Phase::PARKED:
        ++n.parked;
        break;
      case schema::Phase::WAITING:
      case schema::Phase::STARTING:
      case schema::Phase::LOADING:
        ++n.coming;
        break;
      default:
        break;
    }
  }
  return n;
}

/// One host's part, from its start until the cluster has gone down, by a signal or by `lethe down`.
class watcher {
 public:
  /// `closes` is called once, when everything is loaded.
  watcher(running_part& node, std::string host, detached_start& waits, live_view& view,
          std::function<void()> closes)
      : node_(node),
        host_(std::move(host)),
        waits_(waits),
        view_(view),
        closes_(std::move(closes)) {}

  void run(const sigset_t& signals) {
    if (!node_.leads()) up({});  // its engines come when it has found the leader
    while (!node_.ended() && !node_.broken()) {
      timespec pause{.tv_sec = 0, .tv_nsec = 50'000'000};
      if (sigtimedwait(&signals, nullptr, &pause) > 0) leave();
      if (auto stands = node_.standing(); stands != stood_) view_.say(*(stood_ = stands));
      auto answer = node_.ask(ask_status(), std::chrono::seconds(1));
      if (!answer) continue;
      auto read = unpack(*answer, [this](schema::ControlAnswer::Reader r) {
        if (r.isStatus()) look(r.getStatus());
      });
      if (!read) view_.say(schema::Event::NO_STATUS);
    }
  }

 private:
  void look(schema::Status::Reader s) {
    view_.show(s);
    auto own = engines_on(host_, s);
    if (!up_ && own.coming == 0) up(own);
  }

  /// For who waits for it: everything here has come up, or won't.
  void up(own_engines own) {
    up_ = true;
    closes_();
    tell_systemd("READY=1");
    if (!waits_.awaited()) return;
    if (own.parked > 0) view_.say(schema::Event::SOME_PARKED, own.parked);
    view_.say(schema::Event::DETACHED, int(::getpid()));
    waits_.tell(own.parked > 0 ? 1 : 0);
  }

  void leave() {
    view_.say(asked_ ? schema::Event::ENDS_AT_ONCE : schema::Event::DRAINS);
    tell_systemd("STOPPING=1");
    if (auto sent = node_.leave(asked_ ? schema::Down::NOW : schema::Down::DRAIN); !sent)
      view_.say(schema::Event::NOT_TAKEN);
    asked_ = true;
  }

  running_part& node_;
  std::string host_;
  detached_start& waits_;
  live_view& view_;
  std::function<void()> closes_;
  std::optional<telemetry_event> stood_;
  bool asked_ = false, up_ = false;
};

result<std::string> host_for(const checked_config& c, const std::string& asked) {
  const auto& hosts = c.layout.hosts;
  std::string names;
  for (const auto& h : hosts) {
    if (h.name == asked || (asked.empty() && hosts.size() == 1)) return h.name;
    names += (names.empty() ? "" : ", ") + h.name;
  }
  if (asked.empty()) return fail("the file has several hosts; say --host and one of {}", names);
  return fail("--host {}: the file has {}", asked, names);
}

/// Whoever started this may wait for these lines; a full disk is no reason not to serve.
void tell_listeners(const std::vector<bound_listener>& listeners, live_view& view) {
  std::string text;
  for (const auto& l : listeners) text += fmt::format("listening {} {}\n", l.role, l.url);
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
  view.say(schema::Event::OUTPUT_LOST, int(errno));
  std::clearerr(stdout);
}

result<std::unique_ptr<running_part>> start(const checked_config& checked,
                                            const std::string& host) {
  if (checked.is_service()) {
    auto service = service_node::start(checked);
    if (!service) return service.why();
    return std::unique_ptr<running_part>(*std::move(service));
  }
  auto node = cluster_node::start(checked, host);
  if (!node) return node.why();
  return std::unique_ptr<running_part>(*std::move(node));
}

/// What strict asks of a process before it has secrets.
result<void> harden(live_view& view) {
  if (auto loaders = close_environment(); !loaders.empty())
    view.say(schema::Event::LOADER_WAS_SET, uint32_t(loaders.size()));
  if (auto able = can_filter_calls(); !able) return able.why();
  return refuse_dumps();
}

/// And once it has loaded all that it needs.
void close_process(new_code code, live_view& view) {
  if (!filter_calls(code)) view.say(schema::Event::NOT_FILTERED, errno);
  if (auto left = lock_heaps().left; left > 0) view.say(schema::Event::NOT_LOCKED, left);
}

/// What is broken, or a connection that was just lost, may keep the rest from ending.
void bound_end(int code) {
  std::thread([code] {
    std::this_thread::sleep_for(end_patience);
    say_once(telemetry_event(schema::Event::NOT_ENDED));
    ::_exit(code);
  }).detach();
}

int serve(const checked_config& checked, const std::string& host, detached_start& waits) {
  if (auto note = shared_cores(checked.layout, host, machine::here()))
    std::fputs(fmt::format("note: {}\n", *note).c_str(), stderr);
  auto signals = block_signals();
  live_view view(names_of(checked));
  auto config = checked.config.get();
  const bool hardens = config.getProfile() != schema::Profile::LAB;
  if (hardens)
    if (auto hard = harden(view); !hard) return refuse(hard.why().text);
  auto node = start(checked, host);
  if (!node) return refuse(node.why().text);
  // Who starts engines' processes must be able to; it holds no content, they close themselves.
  auto new_programs =
      config.getEngines().getProcesses() != schema::Processes::SHARED && !checked.is_service()
          ? new_code::allowed
          : new_code::refused;
  watcher watch(**node, host, waits, view, [&] {
    if (hardens) close_process(new_programs, view);
  });
  tell_listeners((*node)->listeners(), view);
  watch.run(signals);
  auto broken = (*node)->broken();
  if (broken) view.say(*broken);
  const int code = broken ? 1 : 0;
  bound_end(code);
  (*node)->end();
  if (!broken) view.say(checked.is_service() ? schema::Event::SERVICE_DOWN : schema::Event::DOWN);
  return code;
}

/// Where a detached host's part tells what it does: beside its control socket.
result<std::filesystem::path> log_path(const checked_config& c, const std::string& host) {
  std::string name = c.config.get().getName();
  if (c.layout.hosts.front().name != host) name += "-" + host;
  auto running = running_clusters();
  if (std::ranges::find(running, name) != running.end())
    return fail("cluster \"{}\" runs here already; end it with lethe down", name);
  auto path = control_path(name);
  if (!path) return path.why();
  return path->replace_extension(".log");
}

int run(const std::string& file, const std::string& asked_host, bool detach) {
  auto checked = check_config(file, machine::here());
  for (const auto& problem : checked.config.problems()) fmt::print(stderr, "{}\n", problem);
  if (!checked.good()) return refuse(file + ": mend it first; nothing was started");
  auto host = host_for(checked, asked_host);
  if (!host) return refuse(file + ": " + host.why().text);
  detached_start waits;
  if (!detach) return serve(checked, *host, waits);
  auto log = log_path(checked, *host);
  if (!log) return refuse(log.why().text);
  auto waited = waits.split(*log);
  if (!waited) return refuse(waited.why().text);
  if (!*waited) return serve(checked, *host, waits);
  fmt::print("its log is {}\n", log->string());
  return **waited;
}

}  // namespace

void add_up(CLI::App& app, int& exit_code) {
  auto* up = app.add_subcommand(
      "up",
      "Start this host's part of a cluster, an issuer, a relay or a witness, and stay with it");
  auto file = std::make_shared<std::string>();
  auto host = std::make_shared<std::string>();
  up->add_option("FILE", *file, "the TOML file of the cluster, issuer, relay or witness")
      ->required();
  up->add_option("--host", *host, "which of the file's hosts this is");
  auto detach = std::make_shared<bool>(false);
  up->add_flag("--detach", *detach, "return when it is up, and leave it running");
  up->footer(
      "Prints a line for each listener to standard output, and what comes up to standard error.\n"
      "Ctrl-C or SIGTERM drains: running requests finish first; a second one ends at once. On the\n"
      "leading (first) host it ends the cluster, on another one that host's part.\n"
      "With --detach it returns 0 when this host's engines are ready, 1 when one could not start;\n"
      "a host that doesn't lead returns at once. lethe down ends it.\n"
      "Example:\n  lethe up configs/one.toml");
  up->callback([=, &exit_code] { exit_code = run(*file, *host, *detach); });
}

}  // namespace lethe
