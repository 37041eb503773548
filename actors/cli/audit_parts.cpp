#include "actors/cli/audit_parts.hpp"

#include <fmt/format.h>

#include "actors/audit/closed_processes.hpp"
#include "actors/audit/from_outside.hpp"
#include "actors/audit/live_shapes.hpp"
#include "actors/audit/no_activations.hpp"
#include "actors/audit/no_keys.hpp"
#include "actors/audit/no_node_key.hpp"
#include "actors/audit/no_trace.hpp"
#include "actors/audit/wipe_cost.hpp"
#include "runtime/audit/completion_order.hpp"
#include "runtime/audit/lies.hpp"
#include "runtime/audit/metrics_differences.hpp"
#include "runtime/audit/prefix_oracle.hpp"
#include "runtime/audit/router_view.hpp"
#include "runtime/audit/routing_price.hpp"
#include "runtime/audit/steering.hpp"
#include "runtime/audit/trace_shapes.hpp"

namespace lethe {

namespace {

namespace fs = std::filesystem;
using audit::finding;
using findings = result<std::vector<finding>>;

fs::path own_program() { return fs::read_symlink("/proc/self/exe"); }

audit::embedded_settings cluster_of(const audit_words& words) {
  return {.program = own_program().string(), .model = words.model};
}

audit::no_trace_settings search_of(const audit_words& words, const audit_teller& tell) {
  return {.cluster = cluster_of(words),
          .controls = audit_controls(words),
          .brief = words.quick,
          .progress = tell};
}

/// For parts that give one.
findings list_of(result<finding> f) {
  if (!f) return f.why();
  return std::vector<finding>{*std::move(f)};
}

findings no_trace(const audit_words& words, const audit_teller& tell) {
  return list_of(audit::measure_no_trace(search_of(words, tell)));
}

/// Of an engine's threads, and of ranks that are processes.
findings no_activations(const audit_words& words, const audit_teller& tell) {
  std::vector<finding> all;
  for (unsigned ranks : {1u, 2u}) {
    auto settings = search_of(words, tell);
    settings.cluster.ranks = ranks;
    auto f = audit::measure_no_activations(settings);
    if (!f) return f.why();
    all.push_back(*std::move(f));
  }
  return all;
}

findings no_keys(const audit_words& words, const audit_teller& tell) {
  auto of_answers = audit::measure_no_keys(search_of(words, tell));
  if (!of_answers) return of_answers.why();
  auto of_nodes = audit::measure_no_node_key(search_of(words, tell));
  if (!of_nodes) return of_nodes.why();
  return std::vector<finding>{*std::move(of_answers), *std::move(of_nodes)};
}

findings wipe_cost(const audit_words& words, const audit_teller& tell) {
  return list_of(audit::measure_wipe_cost(search_of(words, tell)));
}

findings closed(const audit_words& words, const audit_teller& tell) {
  tell("looking at the processes of a strict cluster, then of a lab one");
  auto settings = cluster_of(words);
  settings.ranks = 2;
  auto cluster = audit::embedded_cluster::start(settings);
  if (!cluster) return cluster.why();
  return std::vector<finding>{audit::measure_closed_processes(**cluster, cluster_of(words))};
}

/// Of the cluster that the trust file names, or of an embedded one.
findings log_seen(const audit_words& words, const audit_teller& tell) {
  std::unique_ptr<audit::embedded_cluster> own;
  std::string file = words.trust;
  if (file.empty()) {
    auto cluster = audit::embedded_cluster::start(cluster_of(words));
    if (!cluster) return cluster.why();
    own = *std::move(cluster);
    file = own->trust();
  }
  auto trust = trust_file::read(file);
  if (!trust) return trust.why();
  return audit::measure_from_outside(*trust, tell);
}

findings draws(const audit_words& words, const audit_teller& tell) {
  tell("drawing nodes as clients do, and beside it with a bias");
  std::vector<finding> f{audit::measure_draws({.beside = words.quick ? 100'000u : 1'000'000u}),
                         audit::measure_pairs({.pairs = words.quick ? 50'000u : 200'000u})};
  return f;
}

findings placement(const audit_words& words, const audit_teller& tell) {
  tell("placing requests of two users at four nodes");
  audit::placement_settings placed;
  if (words.quick) placed.talks = 150, placed.equal_within = 0.2;
  auto f = audit::measure_placement(placed);
  tell("the same with two candidates each");
  audit::pair_placement_settings pairs;
  if (words.quick) pairs.placed.talks = 100, pairs.steered.bodies = 60;
  f.push_back(audit::measure_two_candidates(pairs));
  return f;
}

findings steering(const audit_words& words, const audit_teller& tell) {
  tell("lying as a scheduler that wants a victim at one node");
  audit::steering_settings s;
  if (words.quick) s.bodies = 200, s.bodies_each = 40;
  return std::vector<finding>{audit::measure_steering(s)};
}

findings lies(const audit_words&, const audit_teller& tell) {
  tell("telling one client what the others are not told");
  return std::vector<finding>{audit::measure_lies()};
}

findings router(const audit_words& words, const audit_teller& tell) {
  tell("comparing what a gateway sees of two users");
  return std::vector<finding>{audit::measure_router_view({.requests = words.quick ? 32u : 128u})};
}

findings price(const audit_words& words, const audit_teller& tell) {
  tell("simulating what routers do that see everything");
  audit::routing_settings s;
  if (words.quick) s.nodes = 500, s.requests = 60'000;
  return std::vector<finding>{audit::measure_routing_price(s)};
}

findings shapes(const audit_words& words, const audit_teller& tell) {
  auto model = served_model::open({.path = words.model, .threads = 1});
  if (!model) return model.why();
  audit::shape_settings s{.model = *model};
  if (words.quick) s.prompts = 16, s.captures = 12, s.tokens_most = 120;
  tell("guessing prompts by sizes and times of their answers");
  std::vector<finding> f{audit::measure_answer_shapes(s)};
  tell("guessing them by what traces keep");
  f.push_back(audit::measure_trace_shapes(s));
  auto live = audit::measure_live_shapes(search_of(words, tell));
  if (!live) return live.why();
  f.push_back(*std::move(live));
  return f;
}

findings metrics(const audit_words& words, const audit_teller& tell) {
  tell("guessing lengths by two readings of the metrics");
  return std::vector<finding>{
      audit::measure_metrics_differences({.victims = words.quick ? 200u : 1000u})};
}

findings order(const audit_words& words, const audit_teller& tell) {
  tell("looking whether words decide who is answered first");
  return std::vector<finding>{
      audit::measure_completion_order({.rounds = words.quick ? 100u : 500u})};
}

findings prefix(const audit_words& words, const audit_teller& tell) {
  auto model = served_model::open({.path = words.model, .threads = 1});
  if (!model) return model.why();
  tell("guessing how another's prompt began");
  audit::prefix_settings s{.model = *model};
  if (words.quick) s.pairs = 30, s.prefix_pages = 4, s.judge_times = false;
  return std::vector<finding>{audit::measure_prefix_oracle(s)};
}

constexpr audit_part parts[] = {
    {"traces", "what requests leave in memory and files", no_trace},
    {"activations", "what the model's arithmetic leaves in memory", no_activations},
    {"keys", "whether keys outlive the answer that they sealed, or their epoch", no_keys},
    {"cost", "what forgetting takes of the machine and of a request", wipe_cost},
    {"processes", "whether processes can be read or traced", closed},
    {"log", "log, keys, policy and roster as clients see them", log_seen, true},
    {"draws", "whether nodes are drawn by capacity", draws},
    {"placement", "where requests land, for whom", placement},
    {"steering", "how often a lying scheduler gets a victim where it wants", steering},
    {"lies", "what one client may be told and not the others", lies},
    {"router", "what gateway and scheduler see of two users", router},
    {"shapes", "what sizes and times tell of an answer", shapes},
    {"metrics", "what metrics tell of an answer", metrics},
    {"order", "whether words decide who is answered first", order},
    {"prefix", "whether a prompt's beginning speeds up a guess of it", prefix},
    {"price", "what it costs that clients draw their nodes", price},
};

}  // namespace

void audit_teller::operator()(const std::string& what) const {
  std::fputs(fmt::format("{:8.2f} s  {}\n", seconds(), what).c_str(), stderr);
}

double audit_teller::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

std::span<const audit_part> audit_parts() { return parts; }

fs::path audit_controls(const audit_words& words) {
  return words.controls.empty() ? own_program().parent_path() / "controls"
                                : fs::path(words.controls);
}

}  // namespace lethe
