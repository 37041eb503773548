#pragma once

#include "runtime/crypto/answer_shape.hpp"
#include "schemas/config.capnp.h"

namespace lethe {

inline answer_shape shape_of(schema::Shape::Reader s) {
  if (s.getMode() == schema::ShapeMode::OFF) return {};
  const bool ticks = s.getMode() == schema::ShapeMode::SIZE_TICK;
  return {.chunk_bytes = s.getChunk(), .tick_ms = ticks ? s.getTickMs() : 0};
}

}  // namespace lethe
