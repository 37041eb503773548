#include "actors/cluster/rank_device.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

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

cut cut_of(schema::EngineSpec::Reader spec) {
  return {spec.getEngines().getTensor(), spec.getEngines().getPipeline()};
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

result<loaded_device> load_for(schema::EngineSpec::Reader spec, uint32_t rank, devices& here,
                               const weight_source& from,
                               const std::function<void(uint64_t, uint64_t)>& progress) {
  auto device = device_of(spec, rank);
  if (!device) return fail("ranks: rank {} was placed on no device", rank);
  const cut ranks = cut_of(spec);
  const model_shape& shape = from.weights().shape;
  if (auto fits = check_cut(shape, ranks); !fits) return fits.why();
  const auto beside = uint32_t(ranks_beside(spec, rank).size());
  return load_device(here, *device, std::chrono::milliseconds(spec.getHealth().getRankMs()), from,
                     part_for(shape, ranks, rank / ranks.tensor, rank % ranks.tensor),
                     {.threads = std::max(1u, std::thread::hardware_concurrency() / beside),
                      .progress = progress});
}

rank_maker maker_of(schema::EngineSpec::Reader spec, const gloo_config& base, devices& here,
                    loaded_device loaded) {
  return on_device(here, std::move(loaded),
                   {.ranks = cut_of(spec),
                    .forming = base.forming,
                    .timeout = base.timeout,
                    .stuck = end_stuck,
                    .how = arithmetic(spec.getEngines().getArithmetic())});
}

}  // namespace lethe
