#include "runtime/trace/message_names.hpp"

#include <capnp/schema.h>
#include <fmt/format.h>

#include <array>

#include "schemas/control.capnp.h"
#include "schemas/messages.capnp.h"

namespace lethe {

namespace {

template <class... Schemas>
std::array<message_type, sizeof...(Schemas)> table_of() {
  return {{{capnp::typeId<Schemas>(),
            capnp::Schema::from<Schemas>().getShortDisplayName().begin()}...}};
}

}  // namespace

std::span<const message_type> message_types() {
  using namespace schema;
  static const auto table =
      table_of<Place, Placed, Submit, Answer, Credit, Cancel, Release, Lost, EngineState, Adopted,
               EngineLoad, Drain, Join, Joined, StartEngine, StartRanks, KillEngine, EngineEnded,
               Leave, LoadsAsk, Loads, TokenKeys, BeginEpoch, NodeKey, Publish, ServiceState,
               ControlAsk, ControlAnswer, TraceAsk>();
  return table;
}

std::string message_name(uint64_t type) {
  for (const auto& known : message_types())
    if (known.id == type) return known.name;
  return fmt::format("0x{:016x}", type);
}

}  // namespace lethe
