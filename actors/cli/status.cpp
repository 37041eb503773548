#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "actors/cli/ask.hpp"
#include "actors/cli/commands.hpp"
#include "runtime/config/quantity.hpp"
#include "runtime/json/json_text.hpp"
#include "runtime/policy/policy.hpp"

namespace lethe {

namespace {

std::string load_text(schema::EngineStatus::Reader e) {
  auto l = e.getLoad();
  if (l.getPages() == 0) return {};
  return fmt::format("{} running, {} waiting, {} of {} pages, {} MiB", l.getRunning(),
                     l.getQueued(), l.getPagesReserved(), l.getPages(), l.getResidentBytes() >> 20);
}

std::string note_of(schema::EngineStatus::Reader e) {
  auto state = e.getState();
  std::string note;
  if (state.getPhase() == schema::Phase::LOADING && state.getTotal() > 0)
    note = fmt::format("{} % of {}", state.getDone() * 100 / state.getTotal(),
                       bytes_text(state.getTotal()));
  else if (state.getPhase() != schema::Phase::READY)
    note = state.getReason().cStr();
  if (uint32_t silent = e.getLoad().getSilentMs(); silent >= 1000)
    note += fmt::format("{}has requests and says nothing for {} s", note.empty() ? "" : "; ",
                        silent / 1000);
  if (e.getRetryMs() > 0) note += fmt::format(" (again in {} ms)", e.getRetryMs());
  if (e.getRestarts() > 0)
    note += fmt::format("{}restarted {} times", note.empty() ? "" : "; ", e.getRestarts());
  return note;
}

std::string counts_text(schema::ServiceState::Reader one) {
  std::string text;
  for (auto c : one.getCounts())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", c.getNumber(), c.getName().cStr());
  if (one.getNote().size()) text += fmt::format("; {}", one.getNote().cStr());
  return text;
}

/// An issuer, a relay or a witness.
std::string service_picture(schema::Status::Reader s) {
  std::string out = fmt::format("{}  up {} s{}\n", s.getCluster().cStr(), s.getUpMs() / 1000,
                                s.getLeaving() ? "  LEAVING" : "");
  for (auto one : s.getServices())
    out += fmt::format("└─ {}: {}\n", one.getRole().cStr(), counts_text(one));
  return out;
}

std::string joined(capnp::List<capnp::Text>::Reader names) {
  std::vector<std::string> all;
  for (auto name : names) all.push_back(name);
  return fmt::format("{}", fmt::join(all, ", "));
}

const char* name_of(schema::Arithmetic how) {
  switch (how) {
    case schema::Arithmetic::EXACT:
      return "exact";
    case schema::Arithmetic::TENSOR:
      return "tensor";
    case schema::Arithmetic::PAIRS:
      return "pairs";
  }
  return "unknown";  // said by a newer program
}

/// "1x2, ranks on south, too", "2x1 on cuda:0, cuda:1", "1x1 (tensor arithmetic)"
std::string where_text(schema::EngineStatus::Reader e) {
  std::string text;
  if (e.getDevices().size() > 0)
    text = " on " + joined(e.getDevices());
  else if (e.getOthers().size() > 0)
    text = fmt::format(", ranks on {}, too", joined(e.getOthers()));
  if (e.getArithmetic() == schema::Arithmetic::EXACT) return text;
  return fmt::format("{} ({} arithmetic)", text, name_of(e.getArithmetic()));
}

void write_names(json_text& out, const char* key, capnp::List<capnp::Text>::Reader names) {
  out.key(key).open('[');
  for (auto name : names) out.text(name.cStr());
  out.close(']');
}

std::string picture(schema::Status::Reader s) {
  if (s.getWanted() == 0 && s.getServices().size() > 0) return service_picture(s);
  uint32_t ready = 0;
  for (auto e : s.getEngines()) ready += e.getState().getPhase() == schema::Phase::READY;
  std::string out =
      fmt::format("{}  profile {}  model {}  up {} s  {} of {} engines ready{}\n",
                  s.getCluster().cStr(), policy::name_of(s.getProfile()), s.getModel().cStr(),
                  s.getUpMs() / 1000, ready, s.getWanted(), s.getLeaving() ? "  LEAVING" : "");
  for (auto h : s.getHosts()) {
    out +=
        h.getJoined()
            ? fmt::format("├─ host {}  {}  pid {}  {} cores  {}{}\n", h.getName().cStr(),
                          h.getAddress().cStr(), h.getPid(), h.getCores(),
                          bytes_text(h.getMemory()), h.getLeaving() ? "  LEAVING" : "")
            : fmt::format("├─ host {}  {}  not here\n", h.getName().cStr(), h.getAddress().cStr());
    for (auto e : s.getEngines()) {
      if (e.getHost() != h.getName()) continue;
      out += fmt::format("│   ├─ engine {}  {:<8}  {}x{}{}  pid {}  {}  {}\n", e.getSlot(),
                         word_of(e.getState().getPhase()), e.getTensor(), e.getPipeline(),
                         where_text(e), e.getState().getPid(), load_text(e), note_of(e));
    }
  }
  if (auto by = s.getScaling(); by.getMost() > 0)
    out += fmt::format("├─ scaling: {} engines wanted, {} to {} by load; {}{}{}\n", s.getWanted(),
                       by.getLeast(), by.getMost(), by.getNow().cStr(),
                       by.getChanged().size() ? "; " : "", by.getChanged().cStr());
  for (auto one : s.getServices())
    out += fmt::format("├─ {}: {}\n", one.getRole().cStr(), counts_text(one));
  auto c = s.getCounts();
  out += fmt::format(
      "└─ requests: {} admitted, {} served, {} refused, {} cancelled, {} failed, {} turned away; "
      "{} arenas and {} wiped\n",
      c.getAdmitted(), c.getServed(), c.getRefused(), c.getCancelled(), c.getFailed(),
      c.getTurnedAway(), c.getArenasWiped(), bytes_text(c.getBytesWiped()));
  return out;
}

void write_engine(json_text& out, schema::EngineStatus::Reader e) {
  auto state = e.getState();
  auto l = e.getLoad();
  out.open('{').key("engine").number(uint64_t{e.getSlot()}).key("host").text(e.getHost().cStr());
  write_names(out, "others", e.getOthers());
  write_names(out, "devices", e.getDevices());
  out.key("arithmetic").text(name_of(e.getArithmetic()));
  out.key("phase").text(word_of(state.getPhase())).key("epoch").number(uint64_t{state.getEpoch()});
  out.key("pid").number(uint64_t{state.getPid()}).key("restarts").number(uint64_t{e.getRestarts()});
  out.key("reason").text(state.getReason().cStr()).key("running").number(uint64_t{l.getRunning()});
  out.key("waiting").number(uint64_t{l.getQueued()}).key("pages").number(uint64_t{l.getPages()});
  out.key("pages_reserved")
      .number(uint64_t{l.getPagesReserved()})
      .key("arenas")
      .number(uint64_t{l.getArenas()});
  out.key("generated").number(l.getDecoded());
  out.key("resident_bytes").number(l.getResidentBytes()).close('}');
}

std::string as_json(schema::Status::Reader s) {
  json_text out(std::pmr::get_default_resource());
  auto c = s.getCounts();
  out.open('{').key("cluster").text(s.getCluster().cStr()).key("model").text(s.getModel().cStr());
  out.key("up_ms").number(s.getUpMs()).key("wanted").number(uint64_t{s.getWanted()});
  out.key("leaving").boolean(s.getLeaving()).key("hosts").open('[');
  for (auto h : s.getHosts())
    out.open('{')
        .key("name")
        .text(h.getName().cStr())
        .key("joined")
        .boolean(h.getJoined())
        .key("leaving")
        .boolean(h.getLeaving())
        .key("pid")
        .number(uint64_t{h.getPid()})
        .close('}');
  out.close(']').key("engines").open('[');
  for (auto e : s.getEngines()) write_engine(out, e);
  out.close(']').key("services").open('[');
  for (auto one : s.getServices()) {
    out.open('{').key("role").text(one.getRole().cStr()).key("note").text(one.getNote().cStr());
    out.key("counts").open('{');
    for (auto n : one.getCounts()) out.key(n.getName().cStr()).number(n.getNumber());
    out.close('}').close('}');
  }
  out.close(']').key("scaling").open('{');
  auto by = s.getScaling();
  out.key("least").number(uint64_t{by.getLeast()}).key("most").number(uint64_t{by.getMost()});
  out.key("now").text(by.getNow().cStr()).key("changed").text(by.getChanged().cStr());
  out.close('}').key("counts").open('{');
  out.key("admitted").number(c.getAdmitted()).key("served").number(c.getServed());
  out.key("refused").number(c.getRefused()).key("cancelled").number(c.getCancelled());
  out.key("failed").number(c.getFailed()).key("turned_away").number(c.getTurnedAway());
  out.key("arenas_wiped").number(c.getArenasWiped()).key("bytes_wiped").number(c.getBytesWiped());
  out.close('}').close('}');
  return std::string(out.str());
}

int show(const std::string& cluster, bool json) {
  return ask_and(
      cluster, [](auto b) { b.setStatus(); },
      [json](schema::ControlAnswer::Reader r) {
        fmt::print("{}", json ? as_json(r.getStatus()) + "\n" : picture(r.getStatus()));
        return 0;
      });
}

/// Until interrupted, or the cluster ends.
int top(const std::string& cluster, double every, uint32_t times) {
  bool terminal = isatty(STDOUT_FILENO);
  uint64_t tokens = 0;
  for (uint32_t i = 0; times == 0 || i < times; ++i) {
    int code = ask_and(
        cluster, [](auto b) { b.setStatus(); },
        [&](schema::ControlAnswer::Reader r) {
          uint64_t now = 0;
          for (auto e : r.getStatus().getEngines()) now += e.getLoad().getDecoded();
          double rate = i == 0 || now < tokens ? 0 : double(now - tokens) / every;
          tokens = now;
          fmt::print("{}{}{:.1f} tokens/s\n", terminal ? "\x1b[H\x1b[2J" : "",
                     picture(r.getStatus()), rate);
          std::fflush(stdout);
          return 0;
        });
    if (code != 0) return code;
    if (times == 0 || i + 1 < times)
      std::this_thread::sleep_for(std::chrono::duration<double>(every));
  }
  return 0;
}

}  // namespace

void add_status(CLI::App& app, int& exit_code) {
  auto* status = app.add_subcommand("status", "What of a cluster runs, where, and how full it is");
  auto cluster = add_cluster_option(*status);
  auto json = std::make_shared<bool>(false);
  status->add_flag("--json", *json, "for programs");
  status->callback([=, &exit_code] { exit_code = show(*cluster, *json); });

  auto* live = app.add_subcommand("top", "The same, live, with tokens per second; Ctrl-C ends it");
  auto of = add_cluster_option(*live);
  auto every = std::make_shared<double>(1.0);
  auto times = std::make_shared<uint32_t>(0);
  live->add_option("--every", *every, "seconds")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  live->add_option("--times", *times, "and end after so many looks; 0: go on");
  live->callback([=, &exit_code] { exit_code = top(*of, *every, *times); });
}

}  // namespace lethe
