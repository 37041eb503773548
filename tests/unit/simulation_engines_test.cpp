// As many engines as a cluster file allows, under a fake clock: what the cluster says of itself.
#include <gtest/gtest.h>

#include "tests/unit/simulated_cluster.hpp"

namespace lethe {
namespace {

using namespace sim;

/// Of the schema: [engines] count and [scaling] most.
constexpr uint32_t engines_most = 256;

/// Asks once, and keeps what it is told.
caf::behavior asker(caf::event_based_actor* self, directory_actor whom,
                    wire<schema::ControlAsk> what, wire<schema::ControlAnswer>* said) {
  self->request(whom, caf::infinite, std::move(what))
      .then([said](const wire<schema::ControlAnswer>& m) { *said = m; });
  return {};
}

class full_cluster : public simulated_cluster {
 public:
  explicit full_cluster(uint32_t engines, const std::string& more = {})
      : simulated_cluster(
            {.seed = 1, .stop_once_in = 0},
            fmt::format(
                "name = \"full\"\nprofile = \"lab\"\n[model]\npath = \"/synthetic\"\n"
                "context = 512\n[[hosts]]\nname = \"here\"\ncores = 256\n"
                "[engines]\ncount = {}\nthreads = 1\n[batching]\nrunning = 4\nqueue = 4\n{}",
                engines, more),
            {.pages = 16}) {
    has_engines(engines);
  }

  wire<schema::ControlAnswer> order(const std::function<void(schema::ControlAsk::Builder)>& fill) {
    wire<schema::ControlAnswer> said;
    on_.sys->spawn(asker, on_.to_directory, pack<schema::ControlAsk>({}, fill), &said);
    until([&said] { return !said.frame.empty(); });
    return said;
  }
  /// How many engines it tells of with their load.
  std::string status() {
    uint32_t engines = 0, loads = 0;
    std::string scaling, refused;
    auto read = unpack(order([](schema::ControlAsk::Builder b) { b.setStatus(); }),
                       [&](schema::ControlAnswer::Reader r) {
                         if (r.isRefused()) refused = r.getRefused();
                         if (!r.isStatus()) return;
                         scaling = r.getStatus().getScaling().getNow();
                         for (auto e : r.getStatus().getEngines()) {
                           engines += e.getState().getPhase() == schema::Phase::READY;
                           loads += e.getLoad().getEpoch() == e.getState().getEpoch();
                         }
                       });
    if (!read) return read.why().text;
    return refused.empty() ? fmt::format("{} {}", engines, loads) : refused;
  }
  std::string refusal_of_scale(uint16_t engines) {
    std::string why;
    auto read = unpack(
        order([engines](schema::ControlAsk::Builder b) { b.setScale(engines); }),
        [&why](schema::ControlAnswer::Reader r) { why = r.isRefused() ? r.getRefused() : ""; });
    return read ? why : read.why().text;
  }
};

/// Every engine has told its load once.
void hear_loads(full_cluster& c) {
  uint64_t until = c.on_.now_us() + 2'000'000;
  c.until([&] { return c.on_.now_us() >= until; });
}

TEST(FullCluster, SaysHowAllOfItsEnginesAre) {
  for (uint32_t engines : {16u, 17u, engines_most}) {
    full_cluster c(engines);
    hear_loads(c);
    EXPECT_EQ(c.status(), fmt::format("{0} {0}", engines));
  }
}

TEST(FullCluster, IsScaledUpToWhatAFileAllowsAndNotBeyond) {
  full_cluster c(1);
  EXPECT_NE(c.refusal_of_scale(engines_most + 1), "");
  EXPECT_EQ(c.refusal_of_scale(engines_most), "");
  c.until([&c] { return c.on_.desk().engines().size() == engines_most; });
  hear_loads(c);
  EXPECT_EQ(c.status(), fmt::format("{0} {0}", engines_most));
}

/// [batching] running run, queue wait, and who comes then is turned away.
TEST(FullCluster, TakesWhatRunsAndWhatMayWait) {
  full_cluster c(1);
  auto* core = c.on_.living_cores().at(0);
  core->step_us = 200'000;
  for (int i = 0; i < 9; ++i)
    c.on_.face_state().wishes.push_back(
        {.prompt = {c.on_.words.plain().front()}, .max_tokens = 8, .stream = false});
  caf::anon_send(c.on_.face, stirred::value);
  auto load = [core] { return load_of(core->loop.planner()); };
  c.until([&] { return load().running == 4 && load().queued == 4; });
  c.until([&c] { return c.on_.face_state().open() == 0; });
  EXPECT_EQ(c.on_.facts.endings[size_t(ending::served)], 8u);
  EXPECT_EQ(c.on_.facts.endings[size_t(ending::turned_away)], 1u);
}

TEST(FullCluster, LetsNoHostInThatRunsAnotherProgram) {
  full_cluster c(1);
  auto house = std::make_shared<sim_house>(*c.on_.sys, c.on_.facts, c.on_.trace.get(),
                                           engine_size{.pages = 16});
  for (hash32 program : {hash32{}, hash32{std::byte{8}}}) {
    ASSERT_NE(program, hosts_program);
    std::optional<schema::JoinRefusal> said;
    supervisor_setup setup{.host = "here",
                           .program = program,
                           .house = house,
                           .trace = c.on_.trace.get(),
                           .heard = [&said](schema::JoinRefusal why) { said = why; }};
    c.on_.sys->spawn(supervisor, setup, c.on_.to_directory);
    c.until([&said] { return said.has_value(); });
    EXPECT_EQ(said, schema::JoinRefusal::OTHER_PROGRAM);
  }
  c.has_engines(1);  // of the host that was let in
}

/// Idle engines go one after the other, down to the least: their load was read.
TEST(FullCluster, IsScaledByTheLoadOfAllItsEngines) {
  full_cluster c(24, "[scaling]\nleast = 20\nmost = 256\nidle_ms = 500\n");
  c.until([&c] { return c.on_.desk().engines().size() == 20; });
}

}  // namespace
}  // namespace lethe
