#include "runtime/config/layout.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>
#include <thread>

#include "kernels/pairs_row.hpp"

namespace lethe {

namespace {

/// How many ranks each host takes so far.
using loads = std::vector<uint32_t>;

placed_host filled(schema::Host::Reader h, const machine& here) {
  placed_host host{.name = h.getName(),
                   .address = h.getAddress(),
                   .cores = h.getCores(),
                   .memory = h.getMemory(),
                   .device_memory = h.getDeviceMemory(),
                   .cores_given = h.getCores() != 0};
  for (auto name : h.getDevices()) host.devices.push_back(name);
  if (host.cores == 0) host.cores = here.cores;
  if (host.memory == 0) host.memory = here.memory / 4 * 3;
  return host;
}

/// A label of a DNS name: it becomes part of file names and certificates.
bool is_name(std::string_view name) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-' &&
         std::ranges::all_of(name, plain);
}

/// Named as CUDA counts them, each once.
void check_devices(cluster_config& config, const placed_host& host, const std::string& at) {
  std::set<std::string> names;
  for (size_t i = 0; i < host.devices.size(); ++i) {
    const auto& name = host.devices[i];
    std::string key = fmt::format("{}devices[{}]", at, i);
    if (!device_number(name)) config.refuse(key, "must be cuda:0, cuda:1, ...");
    if (!names.insert(name).second) config.refuse(key, "{} is listed twice", name);
  }
  if (!host.devices.empty() && host.device_memory == 0)
    config.refuse(at + "devices", "say device_memory, too: what one of them has, as \"80 GiB\"");
}

std::vector<placed_host> hosts_of(cluster_config& config, const machine& here) {
  std::vector<placed_host> hosts;
  std::set<std::string> names;
  auto listed = config.get().getHosts();
  for (unsigned i = 0; i < listed.size(); ++i) {
    hosts.push_back(filled(listed[i], here));
    std::string at = fmt::format("hosts[{}].", i);
    if (!is_name(hosts.back().name))
      config.refuse(at + "name", "must be 1 to 63 letters, digits and inner hyphens");
    if (!names.insert(hosts.back().name).second)
      config.refuse(at + "name", "\"{}\" is taken by another host", hosts.back().name);
    check_devices(config, hosts.back(), at);
    if (listed.size() > 1 && listed[i].getPort() == 0)
      config.refuse(at + "port", "is missing; hosts reach each other through it");
  }
  if (hosts.empty())
    hosts.push_back({.name = "local",
                     .address = "127.0.0.1",
                     .cores = here.cores,
                     .memory = here.memory / 4 * 3});
  return hosts;
}

/// Ranks that a host takes: a device each, or by its cores where the file limits them.
uint32_t room_of(const placed_host& host, uint32_t threads) {
  if (!host.devices.empty()) return uint32_t(host.devices.size());
  return host.cores_given ? std::max(1u, host.cores / std::max(1u, threads)) : UINT32_MAX;
}

/// A whole engine on one host where it fits, else rank by rank over the hosts.
class filler {
 public:
  filler(const std::vector<placed_host>& hosts, uint32_t threads, bool spread)
      : hosts_(hosts), threads_(threads), spread_(spread), used_(hosts.size(), 0) {}

  std::optional<std::vector<uint32_t>> place(uint32_t ranks) {
    for (uint32_t i = 0; i < hosts_.size(); ++i) {
      uint32_t host = (first_ + i) % uint32_t(hosts_.size());
      if (free_on(host) < ranks) continue;
      used_[host] += ranks;
      if (spread_) first_ = host + 1;
      return std::vector<uint32_t>(ranks, host);
    }
    return across(ranks);
  }

 private:
  uint32_t free_on(uint32_t host) const {
    uint32_t room = room_of(hosts_[host], threads_);
    return room == UINT32_MAX ? room : room - std::min(room, used_[host]);
  }

  std::optional<std::vector<uint32_t>> across(uint32_t ranks) {
    std::vector<uint32_t> chosen;
    for (uint32_t host = 0; host < hosts_.size(); ++host)
      for (uint32_t n = free_on(host); n > 0 && chosen.size() < ranks; --n) chosen.push_back(host);
    if (chosen.size() < ranks) return {};
    for (uint32_t host : chosen) ++used_[host];
    return chosen;
  }

  const std::vector<placed_host>& hosts_;
  uint32_t threads_;
  bool spread_;
  uint32_t first_ = 0;
  loads used_;
};

void add_engine(cluster_layout& into, uint32_t engine, schema::Engines::Reader cut,
                const std::vector<uint32_t>& hosts) {
  for (uint32_t i = 0; i < hosts.size(); ++i)
    into.ranks.push_back({.engine = engine,
                          .stage = i / cut.getTensor(),
                          .tensor_rank = i % cut.getTensor(),
                          .host = hosts[i]});
}

/// The key that says how many engines there may be, and what it says.
std::pair<const char*, uint32_t> engines_most(schema::Config::Reader c) {
  if (uint32_t most = c.getScaling().getMost()) return {"scaling.most", most};
  return {"engines.count", c.getEngines().getCount()};
}

void fill(cluster_config& config, cluster_layout& into) {
  auto e = config.get().getEngines();
  auto [key, engines] = engines_most(config.get());
  bool spread = e.getPlacement() == schema::Placement::SPREAD;
  filler room(into.hosts, e.getThreads(), spread);
  uint32_t ranks = uint32_t(e.getTensor()) * e.getPipeline();
  for (uint32_t engine = 0; engine < engines; ++engine) {
    auto hosts = room.place(ranks);
    if (!hosts)
      return config.refuse(key,
                           "too few devices: {} engines of {} x {} ranks need {}, and engine {} "
                           "finds no place; fewer engines, a smaller cut, or more hosts",
                           engines, e.getTensor(), e.getPipeline(), ranks * engines, engine);
    add_engine(into, engine, e, *hosts);
  }
}

/// "HOST" (its cores) or "HOST:DEVICE" of one rank.
void place_exactly(cluster_config& config, cluster_layout& into, uint32_t index, placed_rank rank) {
  std::string key = fmt::format("engines.ranks[{}]", index);
  std::string word = config.get().getEngines().getRanks()[index].cStr();
  std::string name = word.substr(0, word.find(':'));
  auto host = std::ranges::find(into.hosts, name, &placed_host::name);
  if (host == into.hosts.end()) return config.refuse(key, "there is no host \"{}\"", name);
  rank.host = uint32_t(host - into.hosts.begin());
  if (name.size() < word.size()) {
    rank.device = word.substr(name.size() + 1);
    if (std::ranges::find(host->devices, rank.device) == host->devices.end())
      return config.refuse(
          key, "host {} has no device \"{}\"; it has {}", name, rank.device,
          host->devices.empty() ? "none" : fmt::format("{}", fmt::join(host->devices, ", ")));
  }
  into.ranks.push_back(std::move(rank));
}

void take_exactly(cluster_config& config, cluster_layout& into) {
  auto e = config.get().getEngines();
  uint32_t ranks = uint32_t(e.getTensor()) * e.getPipeline(), all = ranks * e.getCount();
  if (e.getRanks().size() != all)
    return config.refuse("engines.ranks", "lists {} ranks; {} engines of {} x {} have {}",
                         e.getRanks().size(), e.getCount(), e.getTensor(), e.getPipeline(), all);
  for (uint32_t i = 0; i < all; ++i)
    place_exactly(config, into, i,
                  {.engine = i / ranks,
                   .stage = i % ranks / e.getTensor(),
                   .tensor_rank = i % e.getTensor()});
}

/// Devices are given out in order; exact places keep theirs. No device takes two ranks.
void give_devices(cluster_config& config, cluster_layout& layout) {
  bool exact = config.get().getEngines().getPlacement() == schema::Placement::EXACT;
  std::vector<std::set<std::string>> taken(layout.hosts.size());
  for (auto& rank : layout.ranks) {
    const auto& host = layout.hosts[rank.host];
    if (!exact && !host.devices.empty()) rank.device = host.devices[taken[rank.host].size()];
    if (rank.on_device() && !taken[rank.host].insert(rank.device).second)
      config.refuse("engines.ranks", "{} of host {} is given to two ranks", rank.device, host.name);
  }
}

/// What is computed on a device and what on cores goes different ways between ranks.
void check_kinds(cluster_config& config, const cluster_layout& layout) {
  for (const auto& rank : layout.ranks) {
    auto first = std::ranges::find(layout.ranks, rank.engine, &placed_rank::engine);
    if (first->on_device() == rank.on_device()) continue;
    auto where = [&](const placed_rank& r) {
      return layout.hosts[r.host].name + (r.on_device() ? ":" + r.device : "'s cores");
    };
    return config.refuse("engines.ranks",
                         "engine {} has ranks on {} and on {}: all of an engine's are on devices, "
                         "or none",
                         rank.engine, where(*first), where(rank));
  }
}

/// What a file says of another machine's cores is believed.
bool may_be_here(const placed_host& host) {
  return !host.cores_given || host.address.starts_with("127.") || host.address == "localhost" ||
         host.address == "::1";
}

/// Engines whose bits differ would tell who was sent where. Of cores that are elsewhere their host
/// knows, when an engine starts there.
void check_arithmetic(cluster_config& config, cluster_layout& layout, const machine& here) {
  if (config.get().getEngines().getArithmetic() == schema::Arithmetic::EXACT) return;
  const bool pairs = config.get().getEngines().getArithmetic() == schema::Arithmetic::PAIRS;
  const char* name = pairs ? "pairs" : "tensor";
  auto on_device = &placed_rank::on_device;
  if (pairs && std::ranges::any_of(layout.ranks, on_device))
    return config.refuse("engines.arithmetic",
                         "\"pairs\" is for cores, and an engine is on a device: say \"tensor\", or "
                         "\"exact\"");
  if (std::ranges::adjacent_find(layout.ranks, std::not_equal_to(), on_device) !=
      layout.ranks.end())
    return config.refuse(
        "engines.arithmetic",
        "\"tensor\" gives answers other bits on devices than on cores, and engines "
        "are on both: place them on one kind, or say \"exact\"");
  auto lacks = [&](const placed_rank& r) {
    return !r.on_device() && may_be_here(layout.hosts[r.host]) &&
           !(pairs ? here.pairs_arithmetic : here.tensor_arithmetic);
  };
  auto on_cores = std::ranges::find_if(layout.ranks, lacks);
  if (on_cores == layout.ranks.end())
    return layout.notes.push_back(
        fmt::format("{} arithmetic: answers may differ from exact ones, by the rounding of "
                    "bfloat16; they are the same whatever the company, chunks, pages or cut",
                    name));
  config.refuse(
      "engines.arithmetic",
      "\"{}\" takes {}, which this machine's lack, and engine {} is on the cores of {}: {}its "
      "address and cores if it is another machine, or say \"exact\"",
      name,
      pairs ? "cores with pairs of bfloat16 (AVX512_BF16)"
            : "devices, or cores with tiles of bfloat16 (AMX)",
      on_cores->engine, layout.hosts[on_cores->host].name,
      pairs ? "give " : "give its host devices, or ");
}

void give_cores(cluster_config& config, cluster_layout& layout) {
  uint32_t asked = config.get().getEngines().getThreads();
  loads count(layout.hosts.size(), 0);
  for (const auto& rank : layout.ranks) count[rank.host] += !rank.on_device();
  for (auto& rank : layout.ranks) {
    const auto& host = layout.hosts[rank.host];
    if (!rank.on_device())
      rank.threads = asked ? asked : std::max(1u, host.cores / count[rank.host]);
  }
  for (uint32_t i = 0; i < layout.hosts.size(); ++i) {
    const auto& host = layout.hosts[i];
    uint32_t need = count[i] * std::max(1u, asked);
    if (host.cores_given && need > host.cores)
      config.refuse(asked ? "engines.threads" : engines_most(config.get()).first,
                    "too few devices: {} ranks of {} threads need {} cores, host {} has {}",
                    count[i], std::max(1u, asked), need, host.name, host.cores);
  }
}

void note_shared_cores(cluster_layout& layout, const machine& here) {
  for (const auto& host : layout.hosts)
    if (auto note = shared_cores(layout, host.name, here); note && may_be_here(host))
      layout.notes.push_back(*std::move(note));
}

}  // namespace

std::optional<uint32_t> device_number(std::string_view name) {
  constexpr std::string_view kind = "cuda:";
  if (!name.starts_with(kind) || name.size() > kind.size() + 3) return {};
  uint32_t number = 0;
  const char *begin = name.data() + kind.size(), *end = name.data() + name.size();
  auto [rest, wrong] = std::from_chars(begin, end, number);
  bool plain = wrong == std::errc() && rest == end && (*begin != '0' || end - begin == 1);
  return plain ? std::optional(number) : std::nullopt;
}

machine machine::here() {
  return {.cores = std::max(1u, std::thread::hardware_concurrency()),
          .memory = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE)),
          .tensor_arithmetic = runs_here(amx_tensor),
          .pairs_arithmetic = runs_here(pairs_row())};
}

std::optional<std::string> shared_cores(const cluster_layout& layout, std::string_view host,
                                        const machine& here) {
  uint32_t ranks = 0, threads = 0;
  for (const auto& rank : layout.ranks) {
    if (layout.hosts[rank.host].name != host || rank.on_device()) continue;
    ++ranks;
    threads += rank.threads;
  }
  if (threads <= here.cores) return {};
  return fmt::format("{} threads of {} rank{} share {} cores on {}: they take turns, slower",
                     threads, ranks, ranks == 1 ? "" : "s", here.cores, host);
}

cluster_layout lay_out(cluster_config& config, const machine& here) {
  cluster_layout layout;
  layout.hosts = hosts_of(config, here);
  auto e = config.get().getEngines();
  if (e.getPlacement() == schema::Placement::EXACT)
    take_exactly(config, layout);
  else
    fill(config, layout);
  if (e.getPlacement() != schema::Placement::EXACT && e.getRanks().size() > 0)
    config.refuse("engines.ranks", "is read only with placement = \"exact\"");
  give_devices(config, layout);
  check_kinds(config, layout);
  check_arithmetic(config, layout, here);
  give_cores(config, layout);
  note_shared_cores(layout, here);
  return layout;
}

}  // namespace lethe
