#pragma once

#include <string>

#include "runtime/trace/timeline.hpp"

namespace lethe {

/// Trace events as Perfetto and chrome://tracing read them: processes, a track for each actor (each
/// request has its own), a slice for each message in hand, arrows from where it was sent. `only`:
/// one request, otherwise everything.
std::string perfetto_json(const timeline& t, const traced_request* only);

/// OTLP/JSON: a trace for each request, a span for each of its messages, below the span in which
/// it was sent or else the request's own.
std::string otlp_json(const timeline& t, const traced_request* only);

}  // namespace lethe
