#pragma once

#include <map>
#include <mutex>

#include "actors/cluster/engine_actor.hpp"
#include "actors/cluster/node.hpp"
#include "actors/cluster/rank_house.hpp"

namespace lethe {

result<engine_config> config_of(schema::EngineSpec::Reader spec);

/// Opens engines as a spec says. Engines of one process share what they read only: the weights.
class engine_opener {
 public:
  /// `here`: of ranks, where they may be processes.
  explicit engine_opener(std::optional<rank_host> here = {}) : here_(std::move(here)) {}
  result<opened_engine> open(schema::EngineSpec::Reader spec, const opening& told);

 private:
  result<std::unique_ptr<rank_door>> door(schema::EngineSpec::Reader spec, const opening& told);
  result<std::shared_ptr<const served_model>> model(const model_options& options);

  const std::optional<rank_host> here_;
  std::mutex lock_;  // one load at a time
  std::map<std::string, std::weak_ptr<const served_model>> models_;
};

/// Of the program that runs, read once; zeros if it can't be: receipts carry it, a gateway logs it,
/// and a leader compares it with that of hosts.
hash32 program_digest();

/// How much a process records.
tracer_config trace_config_of(schema::Trace::Reader t);

/// The setup of a real engine; `spec` is copied.
engine_setup setup_of(const wire<schema::StartEngine>& order, std::shared_ptr<engine_opener> opener,
                      tracer* trace);

}  // namespace lethe
