#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "actors/cli/ask.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/detached_start.hpp"
#include "actors/cluster/cluster_node.hpp"
#include "actors/cluster/service_node.hpp"
#include "runtime/config/quantity.hpp"
#include "runtime/hardening/harden.hpp"

namespace lethe {

namespace {

using steady = std::chrono::steady_clock;
constexpr std::chrono::seconds end_patience{5};

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

/// Says what changed since it looked last: a line for each phase, and progress in place.
class live_view {
 public:
  explicit live_view(bool terminal) : terminal_(terminal), begun_(steady::now()) {}

  void show(schema::Status::Reader s) {
    for (auto e : s.getEngines()) show_engine(e);
    bool whole = s.getWanted() > 0 ? ready_of(s) >= s.getWanted() : s.getServices().size() > 0;
    if (whole && !whole_ && s.getWanted() == 0)
      line("ready: {} serves as {}", s.getCluster().cStr(), s.getServices()[0].getRole().cStr());
    else if (whole && !whole_)
      line("ready: {} of {} engines serve {}", ready_of(s), s.getWanted(), s.getModel().cStr());
    whole_ = whole;
  }

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    if (std::exchange(progress_, false)) put("\r\x1b[K");
    double at = std::chrono::duration<double>(steady::now() - begun_).count();
    put(fmt::format("{:8.2f} s  {}\n", at, fmt::format(format, std::forward<Args>(args)...)));
  }

 private:
  /// A log that cannot be written, on a full disk say, is no reason to serve nobody.
  static void put(const std::string& text) { std::fputs(text.c_str(), stderr); }

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
      std::string reason = state.getReason().cStr();
      bool bad = now.first == schema::Phase::PARKED ||
                 (now.first == schema::Phase::WAITING && !reason.empty());
      line("engine {} on {}: {}{}", e.getSlot(), e.getHost().cStr(), word_of(now.first),
           bad                                   ? ": " + reason
           : now.first == schema::Phase::WAITING ? " for its host"
                                                 : "");
    }
    if (!terminal_ || state.getPhase() != schema::Phase::LOADING || state.getTotal() == 0) return;
    put(fmt::format("\r\x1b[K            engine {}: {} of {} loaded", e.getSlot(),
                    bytes_text(state.getDone()), bytes_text(state.getTotal())));
    progress_ = true;
  }

  bool terminal_;
  steady::time_point begun_;
  std::map<uint16_t, std::pair<schema::Phase, uint32_t>> known_;
  bool whole_ = false, progress_ = false;
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
      if (auto stands = node_.standing(); stands != stood_) view_.line("{}", stood_ = stands);
      auto answer = node_.ask(ask_status(), std::chrono::seconds(1));
      if (!answer) continue;
      auto read = unpack(*answer, [this](schema::ControlAnswer::Reader r) {
        if (r.isStatus()) look(r.getStatus());
      });
      if (!read) view_.line("{}", read.why().text);
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
    if (own.parked > 0) view_.line("{} engines are parked; lethe status says why", own.parked);
    view_.line("detached, process {}", ::getpid());
    waits_.tell(own.parked > 0 ? 1 : 0);
  }

  void leave() {
    view_.line("{}", asked_ ? "ending at once" : "draining; again to end at once");
    tell_systemd("STOPPING=1");
    if (auto sent = node_.leave(asked_ ? schema::Down::NOW : schema::Down::DRAIN); !sent)
      view_.line("{}", sent.why().text);
    asked_ = true;
  }

  running_part& node_;
  std::string host_;
  detached_start& waits_;
  live_view& view_;
  std::function<void()> closes_;
  std::string stood_;
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
  view.line("standard output can't be written: {}", std::strerror(errno));
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
  for (const auto& name : close_environment())
    view.line("{} was set: what it had loaded runs inside, and sees what this process sees", name);
  if (auto able = can_filter_calls(); !able) return able.why();
  return refuse_dumps();
}

/// And once it has loaded all that it needs.
void close_process(new_code code, live_view& view) {
  if (auto closed = filter_calls(code); !closed) view.line("{}", closed.why().text);
  if (auto left = lock_warning(lock_heaps()); !left.empty()) view.line("{}", left);
}

int serve(const checked_config& checked, const std::string& host, detached_start& waits) {
  auto signals = block_signals();
  live_view view(isatty(STDERR_FILENO));
  auto config = checked.config.get();
  const bool hardens = config.getProfile() != schema::Profile::LAB;
  if (hardens)
    if (auto hard = harden(view); !hard) return refuse(hard.why().text);
  auto node = start(checked, host);
  if (!node) return refuse(node.why().text);
  // Who starts engines' processes must be able to; it holds no content, they close themselves.
  auto new_programs =
      config.getEngines().getProcesses() == schema::Processes::SEPARATE && !checked.is_service()
          ? new_code::allowed
          : new_code::refused;
  watcher watch(**node, host, waits, view, [&] {
    if (hardens) close_process(new_programs, view);
  });
  tell_listeners((*node)->listeners(), view);
  if (auto note = shared_cores(checked.layout, host, machine::here())) view.line("note: {}", *note);
  watch.run(signals);
  auto broken = (*node)->broken();
  if (!broken) {
    (*node)->end();
    view.line("{}", checked.is_service() ? "down" : "down; every arena is wiped");
    return 0;
  }
  int code = refuse(*broken + "; every open request was told. Start this host again: lethe up");
  std::thread([code] {  // what is broken may keep others from ending
    std::this_thread::sleep_for(end_patience);
    ::_exit(code);
  })
      .detach();
  (*node)->end();
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
