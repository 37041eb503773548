#include "actors/cli/trace_replay.hpp"

#include <fmt/format.h>

#include "actors/cli/commands.hpp"
#include "actors/sim/replay.hpp"
#include "actors/sim/synthetic_model.hpp"
#include "runtime/trace/trace_text.hpp"

namespace lethe {

int replay_recording(const timeline& t) {
  auto schedule = schedule_of(t);
  if (!schedule) return refuse(schedule.why().text + gaps_text(t));
  auto model = sim::synthetic_model();
  if (!model) return refuse(model.why().text);
  const auto& s = *schedule;
  fmt::print("replaying {} request{} on {} engine{}: {} messages over {}; {} of no request\n",
             s.requests.size(), s.requests.size() == 1 ? "" : "s", s.engines.size(),
             s.engines.size() == 1 ? "" : "s", s.messages.size(),
             time_text(s.messages.back().at_ns), s.of_no_request);
  if (!s.pieces_recorded)
    fmt::print(
        "answers' pieces are not in the record ([trace] mode \"allowed\"): their number is "
        "made up\n");
  fmt::print("{}{}", gaps_text(t), left_out_text(s));
  std::fflush(stdout);
  auto again = sim::replay(s, *model);
  auto d = compare(s, again.taken);
  fmt::print("{:<14} {} messages in {} of virtual time; {} served, {} left\n", "replayed",
             again.messages, time_text(again.virtual_ns), again.served, again.left);
  fmt::print("{}", difference_text(s, d));
  fmt::print("{:<14} {}\n", "checks",
             again.violation.empty() ? "held after every message" : again.violation);
  return again.violation.empty() && !d.any() ? 0 : 1;
}

}  // namespace lethe
