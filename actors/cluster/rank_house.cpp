#include "actors/cluster/rank_house.hpp"

#include "actors/cluster/rank_children.hpp"
#include "actors/cluster/rank_device.hpp"
#include "actors/cluster/rank_link.hpp"
#include "actors/cluster/rank_process.hpp"
#include "parallel/process_ranks.hpp"
#include "runtime/serve/served_model.hpp"
#include "runtime/serve/weights_mark.hpp"

namespace lethe {

namespace {

/// Leads them, and outlasts them.
class housed_ranks final : public step_ranks {
 public:
  explicit housed_ranks(std::unique_ptr<rank_door> door)
      : door_(std::move(door)),
        beside_([this](uint32_t rank, const std::string& how) { door_->lose(rank, how); }) {}

  /// Ranks that were told to end do; others wait for nobody any more.
  ~housed_ranks() override {
    leader_.reset();
    door_->close();
  }
  result<void> start(schema::EngineSpec::Reader spec, const rank_host& here,
                     const served_model& model, const grid_config& config,
                     const load_progress& progress);
  void submit(const step_plan& plan, const step_data& data) override {
    leader_->submit(plan, data);
  }
  result<void> wait_oldest() override { return leader_->wait_oldest(); }
  bool draws() const override { return leader_->draws(); }
  uint32_t idle() const override { return leader_->idle(); }
  void run_idle(const work& f) override { leader_->run_idle(f); }
  result<void> health() const override { return door_->health(); }

 private:
  result<void> add_own(schema::EngineSpec::Reader spec, const node_tls& tls,
                       std::optional<int> weights);
  result<void> await_weights(schema::EngineSpec::Reader spec, const hash32& own);

  std::unique_ptr<rank_door> door_;
  rank_children beside_;
  std::unique_ptr<process_ranks> leader_;
};

result<void> housed_ranks::add_own(schema::EngineSpec::Reader spec, const node_tls& tls,
                                   std::optional<int> weights) {
  auto order = pack<schema::StartRanks>({}, [&](schema::StartRanks::Builder b) {
    b.setSpec(spec);
    b.setDoor(door_->port());
  });
  for (uint32_t rank : ranks_beside(spec, 0))
    if (rank != 0)
      if (auto added = beside_.add(rank, order, tls, weights); !added) return added;
  return {};
}

/// However long that takes on another host: whoever ordered this engine has patience of its own.
result<void> housed_ranks::await_weights(schema::EngineSpec::Reader spec, const hash32& own) {
  const auto until = std::chrono::steady_clock::now() + weights_patience;
  auto places = spec.getPlaces();
  for (uint32_t rank = 1; rank < places.size(); ++rank) {
    auto mark = door_->store().get(weights_key(rank), until);
    if (!mark) return mark.why();
    if (!std::ranges::equal(*mark, own))
      return fail("ranks: {} holds other weights on host {} than on {}; give both the same file",
                  spec.getModel().getPath().cStr(), places[rank].getHost().cStr(),
                  places[0].getHost().cStr());
  }
  return door_->store().set(all_weights_key, {});
}

/// Ranks on cores map what this process has loaded; those on devices load while this one does.
result<void> housed_ranks::start(schema::EngineSpec::Reader spec, const rank_host& here,
                                 const served_model& model, const grid_config& config,
                                 const load_progress& progress) {
  auto link = link_of(spec, config, 0, door_->secret());
  if (!link) return link.why();
  auto shared = model.weights ? std::optional(model.weights->memfd()) : std::nullopt;
  if (auto added = add_own(spec, here.tls, shared); !added) return added;
  rank_maker make = make_shard;
  if (model.file) {
    auto loaded = load_for(spec, 0, here.on, *model.file, progress);
    if (!loaded) return loaded.why();
    make = maker_of(spec, link->base, here.on, *std::move(loaded));
  }
  if (auto all = await_weights(spec, mark_of(model.model)); !all) return all;
  auto groups = join_rank_groups(link->base, config.ranks, door_->store(), kind_of(spec));
  if (!groups) return groups.why();
  auto leader = process_ranks::start(model.forms(), config, *std::move(groups), link->spin, make);
  if (!leader) return leader.why();
  leader_ = *std::move(leader);
  return {};
}

}  // namespace

result<std::unique_ptr<rank_door>> open_door(schema::EngineSpec::Reader spec, const node_tls& tls) {
  auto keys = rank_keys::of(tls);
  if (!keys) return keys.why();
  rank_door::terms terms{.slot = spec.getSlot(), .epoch = spec.getEpoch()};
  for (auto place : spec.getPlaces()) terms.hosts.push_back(place.getHost());
  if (terms.hosts.empty()) return fail("ranks: engine {} has no places", spec.getSlot());
  terms.address = spec.getPlaces()[0].getAddress();
  return rank_door::open(std::move(terms), *std::move(keys));
}

result<std::unique_ptr<step_ranks>> start_ranks(schema::EngineSpec::Reader spec,
                                                std::unique_ptr<rank_door> door,
                                                const rank_host& here, const served_model& model,
                                                const grid_config& config,
                                                const load_progress& progress) {
  auto ranks = std::make_unique<housed_ranks>(std::move(door));
  if (auto started = ranks->start(spec, here, model, config, progress); !started)
    return started.why();
  return std::unique_ptr<step_ranks>(std::move(ranks));
}

}  // namespace lethe
