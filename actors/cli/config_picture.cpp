#include "actors/cli/config_picture.hpp"

#include <fmt/format.h>

#include "runtime/cluster/load_scaling.hpp"
#include "runtime/config/plan_memory.hpp"
#include "runtime/config/quantity.hpp"
#include "runtime/config/shape_of.hpp"
#include "runtime/config/toml_mapper.hpp"
#include "runtime/crypto/shape_text.hpp"
#include "runtime/policy/policy.hpp"

namespace lethe {

namespace {

std::string model_text(const checked_config& c) {
  std::string path = c.config.resolve(c.config.get().getModel().getPath().cStr()).string();
  if (!c.model) return path;
  return fmt::format("{} ({}, {} layers, {} heads, {} in memory)", path, c.model->shape.family,
                     c.model->shape.layers, c.model->shape.heads, bytes_text(c.weight_bytes));
}

std::string host_text(const placed_host& h) {
  std::string text =
      fmt::format("{} core{}, {}", h.cores, h.cores == 1 ? "" : "s", bytes_text(h.memory));
  if (h.devices.empty()) return text;
  return text + fmt::format(", {} device{} of {}", h.devices.size(),
                            h.devices.size() == 1 ? "" : "s", bytes_text(h.device_memory));
}

/// Whom a rank on cores shares its weights with.
const char* copy_text(const checked_config& c, const placed_rank& rank) {
  if (rank.on_device()) return "";
  bool shared = c.config.get().getEngines().getProcesses() == schema::Processes::SHARED;
  return shared ? " (of the host's one copy)" : " (of its engine's copy)";
}

/// What else it takes of its device, and leaves; none: it is on cores.
std::string device_text(const checked_config& c, size_t i) {
  if (c.needs.empty() || !c.layout.ranks[i].on_device()) return {};
  uint64_t all = c.layout.hosts[c.layout.ranks[i].host].device_memory;
  uint64_t left = all - std::min(all, c.needs[i].all());
  return fmt::format("about {}; {} left of {}", estimated_text(c.needs[i]), bytes_text(left),
                     bytes_text(all));
}

std::string rank_text(const checked_config& c, size_t i) {
  const auto& r = c.layout.ranks[i];
  std::string on =
      r.on_device() ? r.device : fmt::format("{} thread{}", r.threads, r.threads == 1 ? "" : "s");
  std::string text = fmt::format("stage {} rank {}  {}", r.stage, r.tensor_rank, on);
  if (c.needs.empty()) return text;
  return text + fmt::format("  {}", computed_text(c.needs[i], copy_text(c, r)));
}

/// The ranks of a host, grouped by engine.
std::vector<std::vector<size_t>> engines_on(const cluster_layout& layout, uint32_t host) {
  std::vector<std::vector<size_t>> engines;
  for (size_t i = 0; i < layout.ranks.size(); ++i) {
    if (layout.ranks[i].host != host) continue;
    if (engines.empty() || layout.ranks[engines.back()[0]].engine != layout.ranks[i].engine)
      engines.emplace_back();
    engines.back().push_back(i);
  }
  return engines;
}

void print_rank(const checked_config& c, size_t i, const std::string& stem, bool last) {
  fmt::print("{}{} {}\n", stem, last ? "└─" : "├─", rank_text(c, i));
  std::string more = device_text(c, i);
  if (!more.empty()) fmt::print("{}{}      {}\n", stem, last ? " " : "│", more);
}

void print_host(const checked_config& c, uint32_t host, bool last_host) {
  const auto& h = c.layout.hosts[host];
  const char* stem = last_host ? "   " : "│  ";
  fmt::print("{} host {}  {}  {}\n", last_host ? "└─" : "├─", h.name, h.address, host_text(h));
  auto engines = engines_on(c.layout, host);
  if (engines.empty()) fmt::print("{}└─ no engine\n", stem);
  for (size_t e = 0; e < engines.size(); ++e) {
    bool last_engine = e + 1 == engines.size();
    fmt::print("{}{} engine {}\n", stem, last_engine ? "└─" : "├─",
               c.layout.ranks[engines[e][0]].engine);
    for (size_t r = 0; r < engines[e].size(); ++r)
      print_rank(c, engines[e][r], std::string(stem) + (last_engine ? "   " : "│  "),
                 r + 1 == engines[e].size());
  }
}

void print_service(schema::Config::Reader config) {
  if (config.hasIssuer()) {
    auto i = config.getIssuer();
    fmt::print("{}  an issuer, {}\n└─ listening {}{}; keeps {}; batches of {}\n",
               config.getName().cStr(), i.getName().cStr(),
               i.getCertificate().size() ? "https://" : "http://", i.getListen().cStr(),
               i.getFolder().cStr(), i.getBatch());
  } else if (config.hasWitness()) {
    auto w = config.getWitness();
    fmt::print("{}  a witness, {}\n└─ listening {}{}; keeps {}; cosigns {} log{}\n",
               config.getName().cStr(), w.getName().cStr(),
               w.getCertificate().size() ? "https://" : "http://", w.getListen().cStr(),
               w.getFolder().cStr(), w.getLogs().size(), w.getLogs().size() == 1 ? "" : "s");
  } else {
    auto r = config.getRelay();
    fmt::print("{}  a relay\n└─ listening {}{}; passes on to {}\n", config.getName().cStr(),
               r.getCertificate().size() ? "https://" : "http://", r.getListen().cStr(),
               r.getGateway().cStr());
  }
}

}  // namespace

void print_cluster(const checked_config& c) {
  auto config = c.config.get();
  if (c.is_service()) return print_service(config);
  auto e = config.getEngines();
  fmt::print("{}  profile {}\n", config.getName().cStr(), policy::name_of(config.getProfile()));
  fmt::print("│  model {}\n", model_text(c));
  auto by = scaling_rules::of(config);
  uint16_t engines = by.by_load() ? by.most : e.getCount();
  fmt::print("│  {}{} engine{} of tensor {} × pipeline {}\n",
             by.by_load() ? fmt::format("{} to ", by.least) : "", engines, engines == 1 ? "" : "s",
             e.getTensor(), e.getPipeline());
  if (config.getListen().getApi().size())
    fmt::print("│  listening api http://{}\n", config.getListen().getApi().cStr());
  if (config.getListen().getMetrics().size())
    fmt::print("│  listening metrics http://{}\n", config.getListen().getMetrics().cStr());
  if (config.hasGateway())
    fmt::print("│  gateway {}{}, for relays; issuer {}\n",
               config.getGateway().getCertificate().size() ? "https://" : "http://",
               config.getGateway().getListen().cStr(), config.getGateway().getIssuer().cStr());
  if (config.hasGateway()) fmt::print("│  {}\n", text_of(shape_of(config.getShape())));
  for (uint32_t h = 0; h < c.layout.hosts.size(); ++h)
    print_host(c, h, h + 1 == c.layout.hosts.size());
  for (const auto& note : c.layout.notes) fmt::print("note: {}\n", note);
}

}  // namespace lethe
