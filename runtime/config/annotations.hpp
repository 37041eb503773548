#pragma once

#include <capnp/schema.h>

#include <cstdint>
#include <optional>

/// Reading the annotations of schemas/annotations.capnp; the compiler gives no names to their ids.
namespace lethe::annotations {

inline constexpr uint64_t help_id = 0xcdda29d0053cbd58;
inline constexpr uint64_t required_id = 0x801dd5a7298ef48f;
inline constexpr uint64_t least_id = 0xa0e674dc21a9e950;
inline constexpr uint64_t most_id = 0xc49b789301af388c;
inline constexpr uint64_t bytes_id = 0xba8fb4e89b702fcc;
inline constexpr uint64_t path_id = 0x9d447197bcb2f4cb;
inline constexpr uint64_t elements_id = 0x936695ca1788d171;
inline constexpr uint64_t public_id = 0xfaa8adf5999a2deb;
inline constexpr uint64_t sealed_id = 0xa0143580bb6693ad;

/// The annotation's value where the field carries it.
inline std::optional<capnp::schema::Value::Reader> of(capnp::StructSchema::Field field,
                                                      uint64_t id) {
  for (auto a : field.getProto().getAnnotations())
    if (a.getId() == id) return a.getValue();
  return {};
}

inline bool has(capnp::StructSchema::Field field, uint64_t id) { return bool(of(field, id)); }

}  // namespace lethe::annotations
