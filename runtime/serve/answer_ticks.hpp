#pragma once

namespace lethe {

/// When an answer's next piece may leave: multiples of its tick by the wall clock, the same
/// instants for all requests of all nodes, so that when it leaves tells nothing of what is in it,
/// nor when its request came. `from` is any such instant; what came late is left out.
template <class Time, class Duration>
constexpr Time next_tick(Time from, Time now, Duration tick) {
  return now - (now - from) % tick + tick;
}

}  // namespace lethe
