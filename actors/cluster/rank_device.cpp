#include "actors/cluster/rank_device.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include "actors/cluster/child_process.hpp"
#include "actors/cluster/rank_line.hpp"
#include "parallel/link_address.hpp"
#include "runtime/config/layout.hpp"

namespace lethe {

namespace {

/// The interface that has an address.
result<std::string> interface_of(const std::string& named) {
  auto numeric = numeric_address(named);
  if (!numeric) return numeric.why();
  auto wanted = link_address::parse(*numeric, 0);
  if (!wanted) return wanted.why();
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return fail("ranks: this host's interfaces cannot be listed");
  std::string found;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next)
    if (i->ifa_addr != nullptr && wanted->is_host_of(*i->ifa_addr)) found = i->ifa_name;
  ::freeifaddrs(all);
  if (found.empty()) return fail("ranks: no interface of this host has address {}", *numeric);
  return found;
}

[[noreturn]] void end_stuck(const error& why) {
  leave_last_words(why.text);
  ::_exit(1);
}

}  // namespace

std::optional<uint32_t> device_of(schema::EngineSpec::Reader spec, uint32_t rank) {
  auto places = spec.getPlaces();
  return rank < places.size() ? device_number(places[rank].getDevice().cStr()) : std::nullopt;
}

rank_kind kind_of(schema::EngineSpec::Reader spec) {
  return device_of(spec, 0) ? rank_kind::device : rank_kind::cores;
}

result<void> prepare_device(schema::EngineSpec::Reader spec, uint32_t rank, devices& here) {
  if (!device_of(spec, rank) || spec.getPlaces().size() == 1) return {};
  auto interface = interface_of(spec.getPlaces()[rank].getAddress().cStr());
  if (!interface) return interface.why();
  return here.close_environment({.interface = *interface});
}

rank_maker maker_of(schema::EngineSpec::Reader spec, uint32_t rank, const gloo_config& base,
                    devices& here, loaded_model& model) {
  auto device = device_of(spec, rank);
  if (!device) return make_shard;
  auto make =
      on_device(here, {.number = *device,
                       .ranks = {spec.getEngines().getTensor(), spec.getEngines().getPipeline()},
                       .forming = base.forming,
                       .timeout = base.timeout,
                       .patience = base.timeout,
                       .stuck = end_stuck,
                       .how = arithmetic(spec.getEngines().getArithmetic())});
  return [make = std::move(make), &model](const model_weights& weights, const shard_config& config,
                                          rank_groups& groups) {
    auto made = make(weights, config, groups);
    if (made) model.let_go();
    return made;
  };
}

}  // namespace lethe
