#include "actors/cluster/rank_process.hpp"

#include <signal.h>
#include <sys/prctl.h>

#include <atomic>

#include "actors/cluster/child_process.hpp"
#include "actors/cluster/open_engine.hpp"
#include "actors/cluster/rank_asks.hpp"
#include "actors/cluster/rank_children.hpp"
#include "actors/cluster/rank_device.hpp"
#include "parallel/process_ranks.hpp"
#include "runtime/hardening/harden.hpp"
#include "runtime/serve/weights_mark.hpp"

namespace lethe {

namespace {

constexpr int weights_fd = first_own_fd;

[[noreturn]] void end_process(const result<void>& done) {
  if (!done) leave_last_words(done.why().text);
  ::_exit(done ? 0 : 1);
}

/// One rank, from the order to the end.
class rank_life {
 public:
  rank_life(uint32_t rank, const wire<schema::StartRanks>& order, const node_tls& tls, bool beside,
            devices& here)
      : rank_(rank), order_(order), tls_(tls), is_beside_(beside), here_(here) {}

  result<void> run(schema::StartRanks::Reader r);

 private:
  result<void> serve(schema::EngineSpec::Reader spec, rank_line& line);
  result<void> on_cores(schema::EngineSpec::Reader spec, rank_line& line, const checkpoint& file,
                        const grid_config& config, const rank_link& link);
  result<void> on_device(schema::EngineSpec::Reader spec, rank_line& line, const checkpoint& file,
                         const grid_config& config, const rank_link& link);
  result<std::unique_ptr<loaded_model>> weights(schema::EngineSpec::Reader spec,
                                                const checkpoint& file) const;
  result<void> start_others(schema::EngineSpec::Reader spec, std::optional<int> weights);
  result<void> take_part(schema::EngineSpec::Reader spec, rank_line& line, const checkpoint& file,
                         const model_weights& weights, const grid_config& config,
                         const rank_link& link, const rank_maker& make) const;

  const uint32_t rank_;
  const wire<schema::StartRanks>& order_;
  const node_tls& tls_;
  const bool is_beside_;
  devices& here_;
  std::atomic<bool> done_ = false;
  // One that is lost takes this process along, and that the others.
  rank_children beside_{[this](uint32_t rank, const std::string& how) {
    if (!done_) end_process(fail("rank {}: {}", rank, how));
  }};
};

result<void> rank_life::run(schema::StartRanks::Reader r) {
  auto spec = r.getSpec();
  auto places = spec.getPlaces();
  if (rank_ >= places.size()) return fail("ranks: there is no rank {}", rank_);
  if (spec.getProfile() != schema::Profile::LAB)
    if (auto hard = refuse_dumps(); !hard) return hard;
  auto keys = rank_keys::of(tls_);
  if (!keys) return keys.why();
  auto line = rank_line::call(places[0].getAddress().cStr(), r.getDoor(),
                              places[0].getHost().cStr(), *keys);
  if (!line) return line.why();
  auto done = serve(spec, *line);
  done_ = true;
  if (!done) say_end(*line, done.why().text);
  return done;
}

result<std::unique_ptr<loaded_model>> rank_life::weights(schema::EngineSpec::Reader spec,
                                                         const checkpoint& file) const {
  auto quantize = spec.getModel().getQuantize();
  if (is_beside_) return attach_weights(file, quantize, weights_fd);
  return load_weights(file, quantize, {.threads = 0, .share = share_beside(spec, rank_)});
}

result<void> rank_life::start_others(schema::EngineSpec::Reader spec, std::optional<int> weights) {
  if (is_beside_) return {};
  for (uint32_t other : ranks_beside(spec, rank_))
    if (other != rank_)
      if (auto added = beside_.add(other, order_, tls_, weights); !added) return added;
  return {};
}

result<void> rank_life::serve(schema::EngineSpec::Reader spec, rank_line& line) {
  auto secret =
      join_engine(line, {.slot = spec.getSlot(), .epoch = spec.getEpoch(), .rank = rank_});
  if (!secret) return secret.why();
  auto file = checkpoint::open(spec.getModel().getPath().cStr());
  if (!file) return file.why();
  auto wanted = config_of(spec);
  if (!wanted) return wanted.why();
  auto config = engine::ranks_for(file->shape(), *wanted);
  if (!config) return config.why();
  auto link = link_of(spec, *config, rank_, *std::move(secret));
  if (!link) return link.why();
  return kind_of(spec) == rank_kind::device ? on_device(spec, line, *file, *config, *link)
                                            : on_cores(spec, line, *file, *config, *link);
}

/// The others of this host map what this one has loaded.
result<void> rank_life::on_cores(schema::EngineSpec::Reader spec, rank_line& line,
                                 const checkpoint& file, const grid_config& config,
                                 const rank_link& link) {
  auto model = weights(spec, file);
  if (!model) return model.why();
  if (auto others = start_others(spec, (*model)->memfd()); !others) return others;
  return take_part(spec, line, file, (*model)->weights(), config, link, make_shard);
}

/// The others of this host load theirs meanwhile.
result<void> rank_life::on_device(schema::EngineSpec::Reader spec, rank_line& line,
                                  const checkpoint& file, const grid_config& config,
                                  const rank_link& link) {
  if (auto others = start_others(spec, {}); !others) return others;
  auto source = open_weights(file, spec.getModel().getQuantize());
  if (!source) return source.why();
  auto loaded = load_for(spec, rank_, here_, **source, {});
  if (!loaded) return loaded.why();
  return take_part(spec, line, file, (*source)->weights(), config, link,
                   maker_of(spec, link.base, here_, *std::move(loaded)));
}

/// Once all ranks have their weights, and the same.
result<void> rank_life::take_part(schema::EngineSpec::Reader spec, rank_line& line,
                                  const checkpoint& file, const model_weights& weights,
                                  const grid_config& config, const rank_link& link,
                                  const rank_maker& make) const {
  asked_store store(line);
  if (auto told = store.set(weights_key(rank_), mark_of(file)); !told) return told;
  auto all = store.get(all_weights_key, std::chrono::steady_clock::now() + weights_patience);
  if (!all) return all.why();
  auto groups = join_rank_groups(link.base, config.ranks, store, kind_of(spec));
  if (!groups) return groups.why();
  auto closed = [&](const model_weights& w, const shard_config& own,
                    rank_groups& joined) -> result<std::unique_ptr<step_rank>> {
    auto made = make(w, own, joined);
    if (!made || spec.getProfile() == schema::Profile::LAB) return made;
    // Everything is loaded.
    lock_heaps();
    if (auto filtered = filter_calls(new_code::refused); !filtered) return filtered.why();
    return made;
  };
  return serve_rank(weights, config, *std::move(groups), link.spin, closed);
}

}  // namespace

int run_rank_process(uint32_t rank, const node_tls& tls, bool beside, devices& here) {
  // A stopped one would not notice that its parent has ended.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const wire<schema::StartRanks> order{.frame = read_order(frame_bytes_max<schema::StartRanks>)};
  result<void> done = fail("there is no order; engines start ranks, not people");
  if (!order.frame.empty()) {
    auto read = unpack(order, [&](schema::StartRanks::Reader r) {
      done = prepare_device(r.getSpec(), rank, here);
      if (!done) return;
      end_with_parent();
      done = rank_life(rank, order, tls, beside, here).run(r);
    });
    if (!read) done = read;
  }
  end_process(done);
}

}  // namespace lethe
