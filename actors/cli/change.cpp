#include <fmt/format.h>

#include <charconv>
#include <thread>

#include "actors/cli/ask.hpp"
#include "actors/cli/commands.hpp"
#include "runtime/config/check_config.hpp"

namespace lethe {

namespace {

using steady = std::chrono::steady_clock;

/// What a status says of a change that is under way.
struct progress {
  bool settled = false;
  std::string line;
};

bool is_here(schema::Status::Reader s, capnp::Text::Reader host) {
  for (auto h : s.getHosts())
    if (h.getName() == host) return h.getJoined();
  return false;
}

progress progress_of(schema::Status::Reader s) {
  uint32_t ready = 0, others = 0;
  std::string text, parked;
  for (auto e : s.getEngines()) {
    auto phase = e.getState().getPhase();
    phase == schema::Phase::READY ? ++ready : ++others;
    if (phase != schema::Phase::READY)
      text += fmt::format("{}engine {} {}", text.empty() ? "" : ", ", e.getSlot(), word_of(phase));
    if (phase == schema::Phase::WAITING && !is_here(s, e.getHost()))
      text += fmt::format(" for host {} (lethe up FILE --host {})", e.getHost().cStr(),
                          e.getHost().cStr());
    if (phase == schema::Phase::PARKED) parked = e.getState().getReason().cStr();
  }
  for (auto h : s.getHosts()) {
    others += h.getLeaving();
    if (h.getLeaving())
      text += fmt::format("{}host {} leaving", text.empty() ? "" : ", ", h.getName().cStr());
  }
  if (!parked.empty()) return {true, "parked: " + parked};
  return {ready == s.getWanted() && others == 0,
          fmt::format("{} of {} ready{}{}", ready, s.getWanted(), text.empty() ? "" : "; ", text)};
}

/// Watches until what runs is what should; how it went is the exit code.
int follow(const std::string& cluster, double patience_s) {
  auto until = steady::now() + std::chrono::duration<double>(patience_s);
  std::string said;
  while (steady::now() < until) {
    progress now;
    int code = ask_and(
        cluster, [](auto b) { b.setStatus(); },
        [&](schema::ControlAnswer::Reader r) {
          now = progress_of(r.getStatus());
          return 0;
        });
    if (code != 0) return code;
    if (now.line != said) fmt::print("{}\n", said = now.line);
    std::fflush(stdout);
    if (now.settled) return said.starts_with("parked") ? 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return refuse(fmt::format("not settled within {} s: {}; it goes on by itself, see lethe status",
                            patience_s, said));
}

/// "engines=3"
int scale(const std::string& cluster, const std::string& what, double patience_s) {
  uint16_t engines = 0;
  std::string_view text = what;
  if (text.starts_with("engines=")) text.remove_prefix(8);
  auto [rest, wrong] = std::from_chars(text.data(), text.data() + text.size(), engines);
  if (wrong != std::errc() || rest != text.data() + text.size())
    return refuse(fmt::format("{}: write engines=N", what));
  int code = ask_and(
      cluster, [&](auto b) { b.setScale(engines); }, [](auto) { return 0; });
  return code ? code : follow(cluster, patience_s);
}

int drain(const std::string& cluster, uint16_t engine, double patience_s) {
  int code = ask_and(
      cluster, [&](auto b) { b.setDrain(engine); }, [](auto) { return 0; });
  return code ? code : follow(cluster, patience_s);
}

int apply(const std::string& file, bool look, double patience_s) {
  auto checked = check_config(file, machine::here());
  for (const auto& problem : checked.config.problems()) fmt::print(stderr, "{}\n", problem);
  if (!checked.good()) return refuse(file + ": mend it first; nothing was changed");
  auto config = cluster_config::of(checked.config.get());
  if (!checked.is_service()) {
    auto path =
        std::filesystem::absolute(checked.config.resolve(config.get().getModel().getPath().cStr()));
    config.edit().getModel().setPath(path.lexically_normal().string());
  }
  std::string cluster = config.get().getName();
  auto ask = [&](bool only_look) {
    return ask_and(
        cluster,
        [&](schema::ControlAsk::Builder b) {
          b.initApply().setConfig(config.get());
          b.getApply().setLook(only_look);
        },
        [only_look](schema::ControlAnswer::Reader r) {
          if (!only_look) return 0;
          for (auto line : r.getChanges()) fmt::print("{}\n", line.cStr());
          if (r.getChanges().size() == 0) fmt::print("no difference\n");
          return 0;
        });
  };
  int code = ask(true);
  if (code != 0 || look || checked.is_service()) return code;
  std::fflush(stdout);
  code = ask(false);
  return code ? code : follow(cluster, patience_s);
}

int down(const std::string& word, bool now) {
  auto cluster = cluster_named(word);
  if (!cluster) return refuse(cluster.why().text);
  int code = ask_and(
      *cluster, [now](auto b) { b.setDown(now ? schema::Down::NOW : schema::Down::DRAIN); },
      [](auto) { return 0; });
  if (code != 0) return code;
  while (true) {
    auto names = running_clusters();
    if (std::ranges::find(names, *cluster) == names.end()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fmt::print("{} is down\n", *cluster);
  return 0;
}

}  // namespace

void add_changes(CLI::App& app, int& exit_code) {
  auto patience = std::make_shared<double>(300);
  auto add_patience = [patience](CLI::App* to) {
    to->add_option("--patience", *patience, "seconds to watch")
        ->check(CLI::Range(0.0, 86400.0))
        ->capture_default_str();
  };
  auto* scales = app.add_subcommand("scale", "More or fewer engines, while it serves");
  auto what = std::make_shared<std::string>();
  auto of = add_cluster_option(*scales);
  scales->add_option("engines=N", *what)->required();
  add_patience(scales);
  scales->callback([=, &exit_code] { exit_code = scale(*of, *what, *patience); });

  auto* drains =
      app.add_subcommand("drain", "Take one engine away: it finishes what it runs, and goes");
  auto engine = std::make_shared<uint16_t>(0);
  auto where = add_cluster_option(*drains);
  drains->add_option("ENGINE", *engine, "its number in lethe status")->required();
  add_patience(drains);
  drains->callback([=, &exit_code] { exit_code = drain(*where, *engine, *patience); });

  auto* applies =
      app.add_subcommand("apply", "Show what a changed file changes, and bring it about");
  auto file = std::make_shared<std::string>();
  auto look = std::make_shared<bool>(false);
  applies->add_option("FILE", *file, "the cluster's TOML file")->required();
  applies->add_flag("--look", *look, "only show");
  add_patience(applies);
  applies->callback([=, &exit_code] { exit_code = apply(*file, *look, *patience); });

  auto* downs = app.add_subcommand("down", "End a cluster: running requests finish first");
  auto which = add_cluster_option(*downs);
  auto now = std::make_shared<bool>(false);
  downs->add_flag("--now", *now, "don't wait for them");
  downs->callback([=, &exit_code] { exit_code = down(*which, *now); });
}

}  // namespace lethe
