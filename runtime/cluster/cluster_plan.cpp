#include "runtime/cluster/cluster_plan.hpp"

#include <capnp/dynamic.h>

#include <algorithm>

#include "runtime/config/check_policy.hpp"
#include "runtime/config/config_bounds.hpp"

namespace lethe {

namespace {

using flat = std::map<std::string, std::string>;

std::string shown(capnp::DynamicValue::Reader value) {
  switch (value.getType()) {
    case capnp::DynamicValue::TEXT:
      return fmt::format("\"{}\"", value.as<capnp::Text>().cStr());
    case capnp::DynamicValue::ENUM: {
      auto one = value.as<capnp::DynamicEnum>().getEnumerant();
      return one == nullptr ? "?" : KJ_ASSERT_NONNULL(one).getProto().getName().cStr();
    }
    default:
      return kj::str(value).cStr();
  }
}

/// What a list's element is called: by its name, if it has one, so that its neighbours' coming and
/// going does not change it.
std::string index_of(capnp::DynamicValue::Reader element, uint32_t i) {
  if (element.getType() != capnp::DynamicValue::STRUCT) return std::to_string(i);
  auto fields = element.as<capnp::DynamicStruct>();
  KJ_IF_MAYBE (name, fields.getSchema().findFieldByName("name"))
    return fields.get(*name).as<capnp::Text>().cStr();
  return std::to_string(i);
}

/// Every field by its path, as the file would name it.
void flatten(capnp::DynamicValue::Reader value, const std::string& path, flat& into) {
  if (value.getType() == capnp::DynamicValue::STRUCT) {
    auto fields = value.as<capnp::DynamicStruct>();
    for (auto field : fields.getSchema().getFields()) {
      std::string name = snake_case(field.getProto().getName().cStr());
      flatten(fields.get(field), path.empty() ? name : path + "." + name, into);
    }
  } else if (value.getType() == capnp::DynamicValue::LIST) {
    auto list = value.as<capnp::DynamicList>();
    for (uint32_t i = 0; i < list.size(); ++i)
      flatten(list[i], fmt::format("{}[{}]", path, index_of(list[i], i)), into);
  } else {
    into[path] = shown(value);
  }
}

flat flattened(schema::Config::Reader c) {
  flat all;
  flatten(capnp::DynamicStruct::Reader(c), "", all);
  return all;
}

bool starts_with_any(std::string_view key, std::initializer_list<std::string_view> heads) {
  return std::ranges::any_of(heads, [key](auto head) { return key.starts_with(head); });
}

/// Where processes listen and whom they trust is settled when they start.
bool is_fixed(std::string_view key) {
  return starts_with_any(key, {"name", "profile", "listen.", "tls.", "health.", "trace.", "shape.",
                               "gateway.", "issuer.", "relay.", "witness."});
}

/// A change that running engines don't feel.
bool is_outside_engines(std::string_view key) {
  return key == "engines.count" ||
         starts_with_any(key, {"engines.placement", "engines.ranks", "hosts", "scaling."});
}

struct difference {
  std::string key, line;
};

/// "hosts[west]" of a line about a host that only one of the two files has.
std::optional<difference> host_difference(const std::string& key, const flat& old,
                                          const flat& next) {
  size_t end = key.find(']');
  if (!key.starts_with("hosts[") || end == key.npos) return {};
  std::string host = key.substr(0, end + 1);
  bool was = old.contains(host + ".name"), is = next.contains(host + ".name");
  if (was == is) return {};
  return difference{
      host, is ? fmt::format("{}: added; its engines start when it joins", host)
               : fmt::format("{}: removed; its engines drain, then its process ends", host)};
}

std::vector<difference> differences(const flat& old, const flat& next) {
  std::vector<difference> found;
  auto value = [](const flat& f, const std::string& key) {
    auto at = f.find(key);
    return at == f.end() ? std::string("(none)") : at->second;
  };
  std::map<std::string, int> keys;
  for (const auto& [key, ignored] : old) keys[key];
  for (const auto& [key, ignored] : next) keys[key];
  for (const auto& [key, ignored] : keys) {
    auto before = value(old, key), after = value(next, key);
    if (auto whole = host_difference(key, old, next)) {
      if (found.empty() || found.back().key != whole->key) found.push_back(*whole);
    } else if (before != after && key == "gateway.redis")
      found.push_back({key, key + ": another URL"});  // a password may stand in it
    else if (before != after)
      found.push_back({key, fmt::format("{}: {} -> {}", key, before, after)});
  }
  return found;
}

/// Ranks of several hosts, and of devices, are processes.
result<void> check_layout(const cluster_layout& layout, schema::Engines::Reader engines) {
  const auto processes = engines.getProcesses();
  for (const auto& rank : layout.ranks) {
    const auto& host = layout.hosts[rank.host];
    if (rank.on_device() && processes != schema::Processes::RANKS)
      return fail(
          "engine {} is on {} of {}, which wants a process: [engines] processes = \"ranks\"",
          rank.engine, rank.device, host.name);
    auto first = std::ranges::find(layout.ranks, rank.engine, &placed_rank::engine);
    if (first->host != rank.host && processes != schema::Processes::RANKS)
      return fail(
          "engine {}: its ranks lie on {} and {}; [engines] processes = \"ranks\" lets them, or "
          "place each engine on one host",
          rank.engine, layout.hosts[first->host].name, host.name);
    if (first->host != rank.host && rank.on_device() && engines.getLinks() != schema::Links::CLEAR)
      return fail(
          "engine {}: NCCL seals nothing that goes from {} to {}; place each engine's devices on "
          "one host, or let [engines] links = \"clear\" say that nobody else is on the line (lab "
          "only)",
          rank.engine, layout.hosts[first->host].name, host.name);
  }
  return {};
}

result<cluster_layout> laid_out(schema::Config::Reader from, const machine& here) {
  if (auto ok = check_bounds(from); !ok) return ok.why();
  for (const auto& p : check_policy(from).problems) return fail("{}: {}", p.key, p.text);
  auto config = cluster_config::of(from);
  auto layout = lay_out(config, here);
  if (!config.problems().empty()) return error{config.problems().front()};
  if (auto ok = check_layout(layout, from.getEngines()); !ok) return ok.why();
  return layout;
}

bool on_devices(const cluster_layout& layout) {
  return std::ranges::any_of(layout.ranks, &placed_rank::on_device);
}

/// What the file asks for, where `engines` ran before.
uint16_t engines_of(schema::Config::Reader config, uint16_t engines) {
  auto scaling = scaling_rules::of(config);
  return scaling.by_load() ? scaling.bound(engines) : config.getEngines().getCount();
}

}  // namespace

std::vector<std::string> config_differences(schema::Config::Reader old,
                                            schema::Config::Reader next) {
  std::vector<std::string> lines;
  for (auto& d : differences(flattened(old), flattened(next))) lines.push_back(std::move(d.line));
  return lines;
}

result<cluster_plan> cluster_plan::make(schema::Config::Reader config, const machine& here) {
  auto layout = laid_out(config, here);
  if (!layout) return layout.why();
  uint16_t engines = engines_of(config, config.getEngines().getCount());
  return cluster_plan(cluster_config::of(config), *std::move(layout), engines, here);
}

std::vector<engine_place> cluster_plan::places() const {
  if (kept_) return *kept_;
  const auto arithmetic = config().getEngines().getArithmetic();
  std::vector<engine_place> all;
  for (const auto& rank : layout_.ranks) {
    if (rank.engine >= engines_) break;
    const auto& host = layout_.hosts[rank.host].name;
    if (rank.engine == all.size())
      all.push_back({.host = host, .version = version_, .arithmetic = arithmetic});
    all.back().ranks.push_back(host);
    if (!rank.on_device()) continue;
    all.back().devices.push_back(rank.device);
  }
  for (auto& place : all)
    if (place.hosts().size() == 1) place.ranks.clear();
  return all;
}

bool cluster_plan::knows_host(std::string_view name) const {
  return std::ranges::find(layout_.hosts, name, &placed_host::name) != layout_.hosts.end();
}

result<void> cluster_plan::scale(uint16_t engines) {
  if (auto by = scaling(); by.by_load())
    return fail(
        "the load decides, between {} and {} engines; other bounds: [scaling] least and most "
        "in the file, then lethe apply",
        by.least, by.most);
  auto next = cluster_config::of(config());
  next.edit().getEngines().setCount(engines);
  return take(std::move(next));
}

void cluster_plan::scale_by_load(uint16_t engines) {
  engines_ = scaling().bound(engines);
  kept_.reset();
}

void cluster_plan::keep_only(std::vector<engine_place> places) {
  engines_ = uint16_t(places.size());
  if (!scaling().by_load()) config_.edit().getEngines().setCount(engines_);
  kept_ = std::move(places);
}

result<void> cluster_plan::take(cluster_config next) {
  auto layout = laid_out(next.get(), here_);
  if (!layout) return layout.why();
  engines_ = engines_of(next.get(), engines_);
  config_ = std::move(next);
  layout_ = *std::move(layout);
  kept_.reset();
  return {};
}

result<std::vector<std::string>> cluster_plan::changes(schema::Config::Reader next) const {
  auto made = laid_out(next, here_);
  if (!made) return made.why();
  std::vector<std::string> lines, fixed;
  bool replaced = false;
  const std::string leader = fmt::format("hosts[{}]", layout_.hosts.front().name);
  if (made->hosts.front().name != layout_.hosts.front().name)
    return fail(
        "{} leads; another first host can't while the cluster runs: lethe down, then "
        "lethe up",
        leader);
  for (const auto& d : differences(flattened(config()), flattened(next))) {
    if (is_fixed(d.key) || d.key == leader + ".address" || d.key == leader + ".port")
      fixed.push_back(d.line);
    replaced = replaced || !is_outside_engines(d.key);
    lines.push_back(d.line);
  }
  if (!fixed.empty())
    return fail("{}; this can't change while the cluster runs: lethe down, then lethe up",
                fmt::join(fixed, "; "));
  if (replaced)
    lines.push_back(on_devices(*made)
                        ? "every engine is replaced, one after the other: each leaves its device "
                          "before its successor loads"
                        : "every engine is replaced: its successor is ready before it leaves");
  return lines;
}

result<void> cluster_plan::apply(schema::Config::Reader next) {
  auto all = differences(flattened(config()), flattened(next));
  bool replaced =
      std::ranges::any_of(all, [](const auto& d) { return !is_outside_engines(d.key); });
  if (auto taken = take(cluster_config::of(next)); !taken) return taken;
  version_ += replaced;
  return {};
}

void cluster_plan::describe(schema::EngineSpec::Builder spec, uint16_t id, uint32_t epoch,
                            const engine_place& place, std::string_view host) const {
  auto c = config();
  spec.setSlot(id);
  spec.setEpoch(epoch);
  spec.setModel(c.getModel());
  spec.setEngines(c.getEngines());
  spec.setBatching(c.getBatching());
  spec.setProfile(c.getProfile());
  spec.setTrace(c.getTrace());
  spec.setHealth(c.getHealth());
  spec.setShape(c.getShape());
  spec.setOptimizations(c.getOptimizations());
  for (const auto& rank : layout_.ranks)
    if (layout_.hosts[rank.host].name == host && !rank.on_device())
      spec.setThreads(uint16_t(rank.threads));
  if (!place.devices.empty()) spec.setThreads(1);
  auto places = spec.initPlaces(c.getEngines().getTensor() * c.getEngines().getPipeline());
  for (uint32_t r = 0; r < places.size(); ++r) {
    const auto& name = place.ranks.empty() ? place.host : place.ranks[r];
    places[r].setHost(name);
    if (!place.devices.empty()) places[r].setDevice(place.devices[r]);
    auto known = std::ranges::find(layout_.hosts, name, &placed_host::name);
    if (known != layout_.hosts.end()) places[r].setAddress(known->address);
  }
}

}  // namespace lethe
