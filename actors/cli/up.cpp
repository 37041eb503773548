#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include "actors/cli/ask.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cluster/cluster_node.hpp"
#include "runtime/config/quantity.hpp"

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
    bool whole = ready_of(s) >= s.getWanted() && s.getWanted() > 0;
    if (whole && !whole_)
      line("ready: {} of {} engines serve {}", ready_of(s), s.getWanted(), s.getModel().cStr());
    whole_ = whole;
    model_ = s.getModel().cStr();
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
  std::string model_;
};

wire<schema::ControlAsk> ask_status() {
  return pack<schema::ControlAsk>({}, [](schema::ControlAsk::Builder b) { b.setStatus(); });
}

wire<schema::ControlAsk> ask_down(schema::Down how) {
  return pack<schema::ControlAsk>({}, [how](schema::ControlAsk::Builder b) { b.setDown(how); });
}

/// Until the cluster has gone down, by a signal or by `lethe down`.
void watch(cluster_node& node, live_view& view, const sigset_t& signals) {
  bool asked = false;
  while (!node.ended() && !node.broken()) {
    timespec pause{.tv_sec = 0, .tv_nsec = 50'000'000};
    if (sigtimedwait(&signals, nullptr, &pause) > 0) {
      view.line("{}", asked ? "ending at once" : "draining; again to end at once");
      if (auto sent = node.ask(ask_down(asked ? schema::Down::NOW : schema::Down::DRAIN)); !sent)
        view.line("{}", sent.why().text);
      asked = true;
    }
    auto answer = node.ask(ask_status());
    if (!answer) continue;
    auto read = unpack(*answer, [&view](schema::ControlAnswer::Reader r) {
      if (r.isStatus()) view.show(r.getStatus());
    });
    if (!read) view.line("{}", read.why().text);
  }
}

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

int run(const std::string& file, const std::string& asked_host) {
  auto checked = check_config(file, machine::here());
  for (const auto& problem : checked.config.problems()) fmt::print(stderr, "{}\n", problem);
  if (!checked.good()) return refuse(file + ": mend it first; nothing was started");
  auto host = host_for(checked, asked_host);
  if (!host) return refuse(file + ": " + host.why().text);
  auto signals = block_signals();
  live_view view(isatty(STDERR_FILENO));
  auto node = cluster_node::start(checked, *host);
  if (!node) return refuse(node.why().text);
  tell_listeners((*node)->listeners(), view);
  watch(**node, view, signals);
  auto broken = (*node)->broken();
  if (!broken) {
    node->reset();
    view.line("down; every arena is wiped");
    return 0;
  }
  int code = refuse(*broken + "; every open request was told. Start this host again: lethe up");
  std::thread([code] {  // what is broken may keep others from ending
    std::this_thread::sleep_for(end_patience);
    ::_exit(code);
  })
      .detach();
  node->reset();
  return code;
}

}  // namespace

void add_up(CLI::App& app, int& exit_code) {
  auto* up = app.add_subcommand("up", "Start this host's part of a cluster, and stay with it");
  auto file = std::make_shared<std::string>();
  auto host = std::make_shared<std::string>();
  up->add_option("FILE", *file, "the cluster's TOML file")->required();
  up->add_option("--host", *host, "which of the file's hosts this is");
  up->footer(
      "Prints a line for each listener to standard output, and what comes up to standard error.\n"
      "Ctrl-C or SIGTERM drains: running requests finish first; a second one ends at once.\n"
      "Example:\n  lethe up configs/one.toml");
  up->callback([=, &exit_code] { exit_code = run(*file, *host); });
}

}  // namespace lethe
