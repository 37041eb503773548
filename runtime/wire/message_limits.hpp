#pragma once

#include "runtime/base/limits.hpp"
#include "runtime/wire/wire.hpp"
#include "schemas/control.capnp.h"
#include "schemas/messages.capnp.h"

// Frames that may be larger than others.
namespace lethe {

template <>
inline constexpr size_t frame_bytes_max<schema::Submit> = limits::sealed_request_bytes_max + 4096;
template <>
inline constexpr size_t frame_bytes_max<schema::Answer> = limits::answer_bytes_max;
template <>
inline constexpr size_t frame_bytes_max<schema::ControlAnswer> = limits::control_bytes_max;
template <>
inline constexpr size_t frame_bytes_max<schema::ControlAsk> = limits::control_ask_bytes_max;

}  // namespace lethe
