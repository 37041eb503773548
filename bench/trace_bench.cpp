// What a record of every message costs. Two actors play ping-pong, with recording off and with
// everything recorded: so much takes a record. Then two clusters serve the same requests in short
// slices side by side, one of them recording everything: so much of the throughput it takes.
// Prints a line of JSON for each.

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>

#include "actors/cluster/node.hpp"
#include "bench/through_actors.hpp"

namespace lethe::bench {
namespace {

using steady = std::chrono::steady_clock;
constexpr int rounds = 30;
constexpr double limit = 1.02;

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

void ping_pong(node_config& node, uint32_t balls) {
  caf::actor_system sys(node);
  check_complete(play(sys, trace_mode::all, balls), balls);
  check(play(sys, trace_mode::off, balls).records.records.empty());
  std::vector<double> off, all, more;
  for (int r = 0; r < rounds; ++r) {  // side by side, so that both see the same machine
    off.push_back(play(sys, trace_mode::off, balls).ns_per_message);
    all.push_back(play(sys, trace_mode::all, balls).ns_per_message);
    more.push_back(all.back() - off.back());
  }
  fmt::print(
      "{{\"what\":\"record\",\"messages\":{},\"off_ns\":{:.0f},\"all_ns\":{:.0f},"
      "\"record_ns\":{:.0f}}}\n",
      2 * balls, spread_of(off).median, spread_of(all).median, spread_of(more).median);
}

double cpu_seconds() {
  timespec t{};
  check(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
  return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}

struct slice {
  double seconds, cpu_seconds;
};

slice serve(small_cluster& c, uint32_t streams, uint32_t tokens) {
  double cpu = cpu_seconds();
  auto begin = steady::now();
  c.run(streams, tokens);
  double took = std::chrono::duration<double>(steady::now() - begin).count();
  return {took, cpu_seconds() - cpu};
}

/// What the client alone takes in hand: every piece of every answer.
bool recorded_all(small_cluster& c, uint32_t streams, uint32_t tokens) {
  auto answers = [&c] {
    auto all = c.trace().read().records;
    return std::ranges::count(all, capnp::typeId<schema::Answer>(), &trace_record::type);
  };
  auto before = answers();
  size_t pieces = 0;
  for (const auto& s : c.run(streams, tokens)) pieces += s.pieces.size();
  return pieces > 0 && size_t(answers() - before) == pieces;
}

int throughput(const std::shared_ptr<const served_model>& model, const engine_config& config,
               node_config& node, uint32_t streams, uint32_t tokens, uint32_t pairs) {
  small_cluster off(model, config, {.mode = trace_mode::off}, node);
  small_cluster all(model, config, {.mode = trace_mode::all}, node);
  for (auto* c : {&off, &all})
    if (!c->says_the_same(streams, tokens))
      return fmt::print(stderr, "a stream says something else through the actors than alone\n"), 1;
  if (!recorded_all(all, streams, tokens) || !off.trace().read().records.empty())
    return fmt::print(stderr, "not every piece left a record\n"), 1;
  std::vector<double> wall, cpu, rate;
  for (uint32_t i = 0; i < pairs; ++i) {
    slice with{}, without{};
    // Whoever comes second in a pair finds the machine otherwise: they take turns.
    if (i % 2 == 0) with = serve(all, streams, tokens);
    without = serve(off, streams, tokens);
    if (i % 2 == 1) with = serve(all, streams, tokens);
    wall.push_back(with.seconds / without.seconds);
    cpu.push_back(with.cpu_seconds / without.cpu_seconds);
    rate.push_back(streams * tokens / without.seconds);
  }
  auto w = spread_of(wall), p = spread_of(cpu);
  fmt::print(
      "{{\"what\":\"throughput\",\"streams\":{},\"pairs\":{},\"tokens_per_second\":{:.0f},"
      "\"ratio\":{:.4f},\"ratio_p10\":{:.3f},\"ratio_p90\":{:.3f},\"cpu_ratio\":{:.4f},"
      "\"limit\":{:.2f},\"of_limit\":{:.2f}}}\n",
      streams, pairs, spread_of(rate).median, w.median, w.p10, w.p90, p.median, limit,
      (w.median - 1) / (limit - 1));
  return 0;
}

}  // namespace
}  // namespace lethe::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures what a record of every message costs", "trace_bench"};
  std::string path;
  lethe::engine_config config{.threads = 1, .context = 1024};
  uint32_t balls = 20'000, threads = 2, streams = 8, tokens = 32, pairs = 200;
  app.add_option("MODEL", path, "folder or GGUF file")->required();
  app.add_option("--balls", balls, "for each of two actors, in each of 30 rounds")
      ->check(CLI::Range(1u, 1'000'000u));
  app.add_option("--threads", threads, "of the actor system")->check(CLI::Range(1u, 64u));
  app.add_option("--streams", streams, "at once")->check(CLI::Range(1u, 64u));
  app.add_option("--tokens", tokens, "of each answer")->check(CLI::Range(1u, 900u));
  app.add_option("--pairs", pairs, "of slices")->check(CLI::Range(30u, 100'000u));
  CLI11_PARSE(app, argc, argv);
  auto node = lethe::node_config::make({.threads = threads});
  if (!node) return fmt::print(stderr, "{}\n", node.why().text), 1;
  auto model = lethe::served_model::open({.path = path, .name = "bench"});
  if (!model) return fmt::print(stderr, "{}\n", model.why().text), 1;
  lethe::bench::ping_pong(**node, balls);
  return lethe::bench::throughput(*model, config, **node, streams, tokens, pairs);
}
