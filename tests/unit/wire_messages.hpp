#pragma once

#include <capnp/dynamic.h>

#include "runtime/wire/message_limits.hpp"

namespace lethe::testing {

template <class... T>
struct type_list {
  static constexpr size_t size = sizeof...(T);
};

/// Every message between actors, and what an operator's command asks.
using all_messages =
    type_list<schema::Place, schema::Placed, schema::Submit, schema::Answer, schema::Credit,
              schema::Cancel, schema::Release, schema::Lost, schema::EngineState, schema::Adopted,
              schema::EngineLoad, schema::Drain, schema::Join, schema::Joined, schema::StartEngine,
              schema::StartRanks, schema::RankAsk, schema::RankAnswer, schema::KillEngine,
              schema::EngineEnded, schema::Leave, schema::LoadsAsk, schema::Loads,
              schema::ControlAsk, schema::ControlAnswer, schema::TraceAsk>;

template <class Use, class... T>
void each_type(type_list<T...>, Use&& use) {
  (use.template operator()<T>(), ...);
}

/// Reads all that a message holds, as an actor that looks at every field would, and counts it:
/// bytes of text and data, elements, fields.
inline uint64_t read_all(capnp::DynamicValue::Reader value) {
  switch (value.getType()) {
    case capnp::DynamicValue::TEXT:
      return value.as<capnp::Text>().size() + 1;
    case capnp::DynamicValue::DATA:
      return value.as<capnp::Data>().size() + 1;
    case capnp::DynamicValue::LIST: {
      uint64_t n = 1;
      for (auto element : value.as<capnp::DynamicList>()) n += read_all(element);
      return n;
    }
    case capnp::DynamicValue::STRUCT: {
      auto fields = value.as<capnp::DynamicStruct>();
      uint64_t n = 1;
      for (auto field : fields.getSchema().getNonUnionFields()) n += read_all(fields.get(field));
      KJ_IF_MAYBE (field, fields.which()) {
        n += read_all(fields.get(*field));
      }
      return n;
    }
    default:
      return 1;
  }
}

template <class Schema>
result<uint64_t> read_message(const wire<Schema>& m) {
  uint64_t n = 0;
  auto read =
      unpack(m, [&n](typename Schema::Reader r) { n = read_all(capnp::DynamicStruct::Reader(r)); });
  if (!read) return read.why();
  return n;
}

}  // namespace lethe::testing
