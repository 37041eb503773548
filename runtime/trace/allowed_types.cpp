#include "runtime/trace/allowed_types.hpp"

#include "schemas/messages.capnp.h"

namespace lethe {

std::vector<uint64_t> allowed_message_types() {
  return {capnp::typeId<schema::Place>(),       capnp::typeId<schema::Placed>(),
          capnp::typeId<schema::Submit>(),      capnp::typeId<schema::Cancel>(),
          capnp::typeId<schema::Release>(),     capnp::typeId<schema::Lost>(),
          capnp::typeId<schema::EngineState>(), capnp::typeId<schema::Adopted>(),
          capnp::typeId<schema::Drain>(),       capnp::typeId<schema::Join>(),
          capnp::typeId<schema::Joined>(),      capnp::typeId<schema::StartEngine>(),
          capnp::typeId<schema::StartRanks>(),  capnp::typeId<schema::KillEngine>(),
          capnp::typeId<schema::EngineEnded>(), capnp::typeId<schema::Leave>(),
          capnp::typeId<schema::TokenKeys>(),   capnp::typeId<schema::BeginEpoch>(),
          capnp::typeId<schema::NodeKey>(),     capnp::typeId<schema::Publish>()};
}

}  // namespace lethe
