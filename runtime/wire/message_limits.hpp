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
// It holds the places of all ranks as the cluster file names them: up to 4,096 texts.
template <>
inline constexpr size_t frame_bytes_max<schema::StartEngine> = limits::control_ask_bytes_max;
template <>
inline constexpr size_t frame_bytes_max<schema::StartRanks> = limits::control_ask_bytes_max;
// Of each of 256 engines, and of as many that leave for them, 72 bytes of load; beside them 80 of
// counts and nine histograms of up to 160.
template <>
inline constexpr size_t frame_bytes_max<schema::Loads> = 2 * 256 * 72 + 4096;
// Of each engine a node of 24 bytes, its key of 72 and its model's name, at most a file's name.
template <>
inline constexpr size_t frame_bytes_max<schema::Publish> = 256 * 512;
// Addresses of as many ranks as there may be.
template <>
inline constexpr size_t frame_bytes_max<schema::RankAsk> = size_t{68} << 10;
template <>
inline constexpr size_t frame_bytes_max<schema::RankAnswer> = size_t{68} << 10;

}  // namespace lethe
