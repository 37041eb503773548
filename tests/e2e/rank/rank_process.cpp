// One rank of a replica, as a process of its own. Rank 0 leads, and computes the same steps again
// and again; the others serve.
// rank_process RANK TENSOR PIPELINE STORE_FD TIMEOUT_MS PROTECTED MODEL KEYS ADDRESS STAYS

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "actors/cluster/rank_asks.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load.hpp"
#include "tests/e2e/rank/rank_config.hpp"

namespace lethe::e2e {
namespace {

result<void> lead(const model_weights& weights, const grid_config& config, rank_groups groups,
                  rank_store& store) {
  auto leader = process_ranks::start(weights, config, std::move(groups), false);
  if (!leader) return leader.why();
  uint32_t vocab = weights.shape.vocab;
  auto steps = testing::plan_all(rank_prompts(vocab), rank_manner(config.ranks));
  for (bool first = true;; first = false) {
    for (auto& step : steps) {
      auto data = step->data(vocab);
      data.caller_waits = true;  // as in an engine: without stages, this thread computes
      (*leader)->submit(step->plan, data);
      if (auto done = (*leader)->wait_oldest(); !done) return done;
    }
    if (!first) continue;
    if (auto told = store.set("stepping", {}); !told) return told;
  }
}

result<void> run(char** argv, rank_store& store) {
  auto number = [argv](int i) { return uint32_t(std::strtoul(argv[i], nullptr, 10)); };
  const cut ranks{number(2), number(3)};
  auto file = checkpoint::open(argv[7]);
  if (!file) return file.why();
  // Only what it reads: what it lacked would show in the logits.
  auto model = loaded_model::load(*file, {.share = {ranks, {number(1)}}});
  if (!model) return model.why();
  const model_weights& weights = (*model)->weights();
  auto own = rank_gloo(number(1), ranks, number(6) != 0, std::chrono::milliseconds(number(5)));
  own.address = argv[9];
  auto groups = join_rank_groups(own, ranks, store);
  if (!groups) return groups.why();
  grid_config config = rank_grid(ranks);
  if (number(1) == 0) return lead(weights, config, *std::move(groups), store);
  return serve_rank(weights, config, *std::move(groups), false);
}

}  // namespace
}  // namespace lethe::e2e

int main(int argc, char** argv) {
  if (argc != 11) return 2;
  auto line = lethe::rank_line::greet(lethe::owned_fd(std::atoi(argv[4])),
                                      lethe::e2e::keys_in(argv[8]), true);
  if (!line) return 3;
  line->wait_for_ever();
  lethe::asked_store store(*line);
  auto done = lethe::e2e::run(argv, store);
  if (done) return 0;
  (void)bool(store.set(lethe::e2e::why_of(argv[1]), lethe::as_bytes(done.why().text)));
  if (*argv[10] == '1') std::raise(SIGSTOP);  // for whoever wants to see what is left
  return 1;
}
