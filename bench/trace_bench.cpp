// What a record of every message costs: two actors play ping-pong in one actor system, with
// recording off and with everything recorded, in turn. Prints one line of JSON.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <latch>

#include "actors/cluster/clerk.hpp"
#include "actors/cluster/node.hpp"

namespace lethe {
namespace {

using steady = std::chrono::steady_clock;
constexpr int rounds = 30;
// A decode step of a model of a few megabytes, as models/tiny is. Real models take longer, and the
// share of a record is smaller.
constexpr double small_step_ns = 1e6;

struct player_state {
  clerk by;
  uint32_t left = 0;
};

/// Answers each ball with another, until as many have come as it may take.
caf::behavior player(caf::stateful_actor<player_state>* self, tracer* trace, uint16_t number,
                     uint32_t takes, std::latch* done) {
  self->state.by = clerk(trace, actor_kind::engine, number);
  self->state.left = takes;
  self->set_default_handler(refuse_quietly);
  return {[=](const wire<schema::Credit>& m) {
    auto& s = self->state;
    uint64_t request = 0;
    s.by.read(m, [&request](schema::Credit::Reader r) { request = r.getRequest(); });
    self->send(caf::actor_cast<caf::actor>(self->current_sender()),
               s.by.write<schema::Credit>(request, [request](schema::Credit::Builder b) {
                 b.setRequest(request);
                 b.setPieces(4);
               }));
    if (--s.left > 0) return;
    self->quit();
    done->count_down();
  }};
}

struct game {
  double ns_per_message = 0;
  tracer::dump records;
};

game play(caf::actor_system& sys, trace_mode mode, uint32_t balls) {
  tracer trace({.mode = mode, .records = 2 * balls + 64});
  clerk umpire(&trace, actor_kind::face);
  // The rings are there before the clock starts, as in a process that has run for a while.
  std::latch warm(2), done(2);
  auto match = [&](uint32_t each, std::latch* end) {
    auto a = sys.spawn(player, &trace, uint16_t{1}, each, end);
    auto b = sys.spawn(player, &trace, uint16_t{2}, each, end);
    caf::send_as(b, a, umpire.write<schema::Credit>(1, [](auto ball) { ball.setRequest(1); }));
    end->wait();
  };
  match(16, &warm);
  auto begin = steady::now();
  match(balls, &done);
  double took = std::chrono::duration<double, std::nano>(steady::now() - begin).count();
  return {took / (2.0 * balls), trace.read()};
}

/// Each ball left a record, none was lost, and the Lamport clock counted every one.
void check_complete(const game& g, uint32_t balls) {
  check(g.records.lost == 0);
  check(g.records.records.size() == 2 * (balls + 16));
  uint64_t before = 0;
  for (const auto& r : g.records.records) {
    check(r.lamport > before && r.trace == 1 && r.type == capnp::typeId<schema::Credit>());
    before = r.lamport;
  }
}

double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}

int measure(uint32_t balls, uint32_t threads) {
  auto config = node_config::make({.threads = threads});
  if (!config) return fmt::print(stderr, "{}\n", config.why().text), 1;
  caf::actor_system sys(**config);
  check_complete(play(sys, trace_mode::all, balls), balls);
  check(play(sys, trace_mode::off, balls).records.records.empty());
  std::vector<double> off, all, more;
  for (int r = 0; r < rounds; ++r) {  // side by side, so that both see the same machine
    off.push_back(play(sys, trace_mode::off, balls).ns_per_message);
    all.push_back(play(sys, trace_mode::all, balls).ns_per_message);
    more.push_back(all.back() - off.back());
  }
  double cost = median(more);
  fmt::print(
      "{{\"what\":\"trace\",\"balls\":{},\"threads\":{},\"off_ns\":{:.0f},\"all_ns\":{:.0f},"
      "\"ratio\":{:.3f},\"record_ns\":{:.0f},\"percent_of_1ms_step\":{:.4f}}}\n",
      2 * balls, threads, median(off), median(all), median(all) / median(off), cost,
      100.0 * cost / small_step_ns);
  return 0;
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  CLI::App app{"Measures what a record of every message costs", "trace_bench"};
  uint32_t balls = 20'000, threads = 1;
  app.add_option("--balls", balls, "for each of two actors, in each of 30 rounds")
      ->check(CLI::Range(1u, 1'000'000u));
  app.add_option("--threads", threads, "of the actor system")->check(CLI::Range(1u, 64u));
  CLI11_PARSE(app, argc, argv);
  return lethe::measure(balls, threads);
}
