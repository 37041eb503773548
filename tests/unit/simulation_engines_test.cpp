// As many engines as a cluster file allows, under a fake clock: what the cluster says of itself.
#include <gtest/gtest.h>

#include "actors/sim/stage.hpp"
#include "actors/sim/synthetic_model.hpp"

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

class full_cluster {
 public:
  explicit full_cluster(uint32_t engines, const std::string& more = {})
      : on_({.seed = 1, .stop_once_in = 0}, *synthetic_model()) {
    auto file = cluster_config::parse(
        fmt::format("name = \"full\"\nprofile = \"lab\"\n[model]\npath = \"/synthetic\"\n"
                    "context = 512\n[[hosts]]\nname = \"here\"\ncores = 256\n"
                    "[engines]\ncount = {}\nthreads = 1\n[batching]\nrunning = 4\nqueue = 4\n{}",
                    engines, more),
        "full.toml");
    on_.begin(file.get());
    house_ =
        std::make_shared<sim_house>(*on_.sys, on_.facts, on_.trace.get(), engine_size{.pages = 16});
    supervisor_ = on_.join("here", house_);
    until([&] { return on_.known_fleet().settled() && on_.desk().engines().size() == engines; });
  }
  ~full_cluster() {
    if (on_.good()) {
      order([](schema::ControlAsk::Builder b) { b.setDown(schema::Down::NOW); });
      until([this] { return on_.told_down() && on_.empty(); });
    }
    EXPECT_EQ(on_.facts.violation, "");
    if (!on_.good()) std::abort();  // actors in any state are not taken apart
    house_.reset();
    std::vector<supervisor_actor> all{std::exchange(supervisor_, nullptr)};
    on_.end(std::move(all));
  }

  template <class Done>
  void until(Done done) {
    uint64_t last = on_.now_us() + 100'000'000;
    while (on_.good() && !done() && on_.now_us() < last) {
      if (!on_.jobs->jobs.empty())
        on_.run_first();
      else if (!on_.jobs->trigger_timeout())
        break;
    }
    EXPECT_TRUE(done());
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

  stage on_;

 private:
  std::shared_ptr<sim_house> house_;
  supervisor_actor supervisor_;
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

/// Idle engines go one after the other, down to the least: their load was read.
TEST(FullCluster, IsScaledByTheLoadOfAllItsEngines) {
  full_cluster c(24, "[scaling]\nleast = 20\nmost = 256\nidle_ms = 500\n");
  c.until([&c] { return c.on_.desk().engines().size() == 20; });
}

}  // namespace
}  // namespace lethe
