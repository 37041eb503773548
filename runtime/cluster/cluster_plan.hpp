#pragma once

#include <optional>

#include "runtime/base/result.hpp"
#include "runtime/cluster/load_scaling.hpp"
#include "runtime/config/layout.hpp"

namespace lethe {

/// What the operator wants, and what it means for each host. Changes while the cluster runs.
class cluster_plan {
 public:
  /// Of a config that was checked. Refuses what no running cluster can do yet.
  static result<cluster_plan> make(schema::Config::Reader config, const machine& here);

  schema::Config::Reader config() const { return config_.get(); }
  const cluster_layout& layout() const { return layout_; }
  /// How many there should be: what the file says, or the load asks for.
  uint16_t engines() const { return engines_; }
  scaling_rules scaling() const { return scaling_rules::of(config()); }
  /// One for each engine.
  std::vector<engine_place> places() const;
  bool knows_host(std::string_view name) const;

  /// Another number of engines; refused if they find no place, and where the load decides.
  result<void> scale(uint16_t engines);
  /// The load asks for another number, within its bounds; the file's stays.
  void scale_by_load(uint16_t engines);
  /// The places are these, whatever the layout would say: an engine was drained by hand.
  void keep_only(std::vector<engine_place> places);

  /// What `next` changes, a line each: "batching.running: 64 -> 32". An error names what can't be
  /// changed while the cluster runs.
  result<std::vector<std::string>> changes(schema::Config::Reader next) const;
  result<void> apply(schema::Config::Reader next);

  /// All that an engine of this plan must know.
  void describe(schema::EngineSpec::Builder spec, uint16_t id, uint32_t epoch,
                const engine_place& place) const {
    describe(spec, id, epoch, place, place.host);
  }
  /// And what those of its ranks must know that lie on `host`.
  void describe(schema::EngineSpec::Builder spec, uint16_t id, uint32_t epoch,
                const engine_place& place, std::string_view host) const;

 private:
  cluster_plan(cluster_config config, cluster_layout layout, uint16_t engines, const machine& here)
      : config_(std::move(config)), layout_(std::move(layout)), here_(here), engines_(engines) {}

  result<void> take(cluster_config next);

  cluster_config config_;
  cluster_layout layout_;
  machine here_;
  uint16_t engines_;
  uint32_t version_ = 1;  // rises when engines must be replaced
  std::optional<std::vector<engine_place>> kept_;
};

/// What differs between two files, a line each, by the names that files have for it.
std::vector<std::string> config_differences(schema::Config::Reader old,
                                            schema::Config::Reader next);

}  // namespace lethe
