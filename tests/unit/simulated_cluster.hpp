#pragma once

#include <gtest/gtest.h>

#include "actors/sim/stage.hpp"
#include "actors/sim/synthetic_model.hpp"

namespace lethe::sim {

/// One host under a fake clock, from its start until it is down.
class simulated_cluster {
 public:
  simulated_cluster(stage_options options, const std::string& toml, const engine_size& size)
      : on_(std::move(options), *synthetic_model()) {
    on_.begin(cluster_config::parse(toml, "simulated.toml").get());
    house_ = std::make_shared<sim_house>(*on_.sys, on_.facts, on_.trace.get(), size);
    supervisor_ = on_.join("here", house_);
  }
  ~simulated_cluster() {
    if (on_.good() && !on_.told_down()) go_down();
    EXPECT_EQ(on_.facts.violation, "");
    if (!on_.good()) std::abort();  // actors in any state are not taken apart
    house_.reset();
    std::vector<supervisor_actor> all{std::exchange(supervisor_, nullptr)};
    on_.end(std::move(all));
  }
  simulated_cluster(const simulated_cluster&) = delete;

  void has_engines(size_t count) {
    until([&] { return on_.known_fleet().settled() && on_.desk().engines().size() == count; });
  }
  template <class Done>
  void until(Done done) {
    const uint64_t last = on_.now_us() + 100'000'000;
    while (on_.good() && !done() && on_.now_us() < last) {
      if (!on_.jobs->jobs.empty())
        on_.run_first();
      else if (!on_.jobs->trigger_timeout())
        break;
      on_.check_step();
    }
    EXPECT_TRUE(done()) << on_.state();
  }
  void go_down() {
    on_.order([](schema::ControlAsk::Builder b) { b.setDown(schema::Down::DRAIN); });
    until([this] { return on_.told_down() && on_.empty(); });
  }

  stage on_;

 private:
  std::shared_ptr<sim_house> house_;
  supervisor_actor supervisor_;
};

}  // namespace lethe::sim
