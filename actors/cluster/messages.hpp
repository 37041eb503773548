#pragma once

#include "actors/cluster/wire_caf.hpp"
#include "runtime/wire/message_limits.hpp"

// Every message between actors. All but the first few are `wire`s: any actor may be remote.
namespace lethe {

/// An actor's words to itself; they carry nothing.
using tick = caf::atom_constant<caf::atom("tick")>;
using stirred = caf::atom_constant<caf::atom("stirred")>;

/// Other systems ask for an actor by its interface. Who answers whom: schemas/messages.capnp.
using face_actor =
    caf::typed_actor<caf::reacts_to<wire<schema::Placed>>, caf::reacts_to<wire<schema::Answer>>,
                     caf::reacts_to<wire<schema::Lost>>, caf::reacts_to<stirred>,
                     caf::reacts_to<tick>>;
/// A face that publishes rosters, too.
using gateway_actor = face_actor::extend<caf::reacts_to<wire<schema::Publish>>>;
using scheduler_actor =
    caf::typed_actor<caf::reacts_to<wire<schema::Place>>, caf::reacts_to<wire<schema::Submit>>,
                     caf::reacts_to<wire<schema::Cancel>>, caf::reacts_to<wire<schema::Release>>,
                     caf::reacts_to<wire<schema::EngineState>>,
                     caf::reacts_to<wire<schema::EngineLoad>>, caf::reacts_to<wire<schema::Drain>>,
                     caf::reacts_to<wire<schema::Leave>>, caf::reacts_to<wire<schema::NodeKey>>,
                     caf::replies_to<wire<schema::LoadsAsk>>::with<wire<schema::Loads>>>;
using engine_actor =
    caf::typed_actor<caf::reacts_to<wire<schema::Submit>>, caf::reacts_to<wire<schema::Cancel>>,
                     caf::reacts_to<wire<schema::Release>>, caf::reacts_to<wire<schema::Adopted>>,
                     caf::reacts_to<wire<schema::Drain>>, caf::reacts_to<wire<schema::Leave>>,
                     caf::reacts_to<wire<schema::BeginEpoch>>,
                     caf::replies_to<wire<schema::TraceAsk>>::with<wire<schema::ControlAnswer>>,
                     caf::reacts_to<tick>>;
using request_actor =
    caf::typed_actor<caf::reacts_to<wire<schema::Credit>>, caf::reacts_to<wire<schema::Cancel>>,
                     caf::reacts_to<stirred>, caf::reacts_to<tick>>;
using directory_actor =
    caf::typed_actor<caf::replies_to<wire<schema::Join>>::with<wire<schema::Joined>>,
                     caf::reacts_to<wire<schema::EngineState>>,
                     caf::reacts_to<wire<schema::EngineEnded>>,
                     caf::reacts_to<wire<schema::NodeKey>>, caf::reacts_to<wire<schema::TokenKeys>>,
                     caf::reacts_to<wire<schema::ServiceState>>,
                     caf::replies_to<wire<schema::ControlAsk>>::with<wire<schema::ControlAnswer>>,
                     caf::reacts_to<tick>>;
using supervisor_actor =
    caf::typed_actor<caf::reacts_to<wire<schema::StartEngine>>,
                     caf::reacts_to<wire<schema::StartRanks>>,
                     caf::reacts_to<wire<schema::KillEngine>>,
                     caf::reacts_to<wire<schema::EngineEnded>>, caf::reacts_to<wire<schema::Leave>>,
                     caf::replies_to<wire<schema::TraceAsk>>::with<wire<schema::ControlAnswer>>>;

/// Issuer and relay: nothing but what an operator asks.
using service_actor =
    caf::typed_actor<caf::replies_to<wire<schema::ControlAsk>>::with<wire<schema::ControlAnswer>>,
                     caf::reacts_to<tick>>;

}  // namespace lethe

CAF_BEGIN_TYPE_ID_BLOCK(lethe_messages, first_custom_type_id)
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Place>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Placed>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Submit>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Answer>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Credit>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Cancel>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Release>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Lost>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::EngineState>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Adopted>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::EngineLoad>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Drain>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Join>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Joined>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::StartEngine>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::StartRanks>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::KillEngine>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::EngineEnded>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Leave>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::LoadsAsk>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Loads>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::ControlAsk>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::ControlAnswer>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::TraceAsk>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::TokenKeys>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::BeginEpoch>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::NodeKey>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::Publish>))
CAF_ADD_TYPE_ID(lethe_messages, (lethe::wire<lethe::schema::ServiceState>))
CAF_END_TYPE_ID_BLOCK(lethe_messages)
