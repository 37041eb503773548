#include "runtime/config/check_config.hpp"

#include <map>

#include "parallel/device_upload.hpp"
#include "runtime/config/check_listeners.hpp"
#include "runtime/config/check_policy.hpp"
#include "runtime/config/check_services.hpp"
#include "runtime/config/quantity.hpp"
#include "runtime/model/dtype_name.hpp"

namespace lethe {

namespace {

void check_scaling(cluster_config& config) {
  auto c = config.get();
  auto s = c.getScaling();
  if (s.getMost() == 0) return;
  uint32_t least = s.getLeast() ? s.getLeast() : c.getEngines().getCount();
  if (s.getMost() < least)
    config.refuse("scaling.most", "is below {} ({})",
                  s.getLeast() ? "scaling.least" : "engines.count", least);
  if (c.getEngines().getPlacement() == schema::Placement::EXACT)
    config.refuse(
        "scaling.most",
        "needs places for engines that come later: placement packed or spread, not exact");
  if (s.getQueuedLow() >= s.getQueued())
    config.refuse("scaling.queued_low", "must be below scaling.queued ({})", s.getQueued());
  if (s.getPagesLow() >= s.getPages())
    config.refuse("scaling.pages_low", "must be below scaling.pages ({})", s.getPages());
  auto b = c.getBatching();
  if (b.getQueue() < s.getQueued())
    config.refuse("scaling.queued",
                  "is never reached: {} requests may wait; batching.queue must be {} or more",
                  b.getQueue(), s.getQueued());
}

void check_numbers(cluster_config& config) {
  auto c = config.get();
  if (c.getHosts().size() > 1 && c.getTls().getFolder().size() == 0)
    config.refuse("tls.folder",
                  "is missing: two hosts and more talk over mutual TLS or not at all; `lethe keys "
                  "init` makes the keys");
  if (c.getHealth().getLostAfterMs() < 2 * c.getHealth().getHeartbeatMs())
    config.refuse("health.lost_after_ms", "must be at least two heartbeats ({} ms)",
                  2 * c.getHealth().getHeartbeatMs());
  check_scaling(config);
  if (c.getBatching().getChunkTokens() > c.getBatching().getStepTokens() &&
      config.gives("batching.chunk_tokens"))
    config.refuse("batching.chunk_tokens", "is above step_tokens ({}): no step could hold a chunk",
                  c.getBatching().getStepTokens());
}

/// The file may be checked where its hosts are not: then the model may be missing.
std::optional<model_facts> read_model(cluster_config& config, cluster_layout& layout) {
  auto m = config.get().getModel();
  auto path = config.resolve(m.getPath().cStr());
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) && config.get().getHosts().size() > 0) {
    layout.notes.push_back(fmt::format(
        "{} is not on this machine: its heads, layers and memory are not checked", path.string()));
    return {};
  }
  auto facts = inspect_model(path, m.getContext());
  if (!facts) {
    config.refuse("model.path", "{}", facts.why().text);
    return {};
  }
  for (const auto& problem : facts->problems) config.refuse("model.path", "{}", problem);
  if (!facts->problems.empty()) return {};
  return *std::move(facts);
}

void check_model(cluster_config& config, const model_facts& model) {
  auto c = config.get();
  auto e = c.getEngines();
  if (auto fits = check_cut(model.shape, {e.getTensor(), e.getPipeline()}); !fits)
    config.refuse(e.getTensor() > 1 ? "engines.tensor" : "engines.pipeline", "{}", fits.why().text);
  if (c.getModel().getContext() > model.shape.context_max)
    config.refuse("model.context", "is above the model's own {}", model.shape.context_max);
  if (c.getModel().getQuantize().size() == 0) return;
  auto type = dtype_named(c.getModel().getQuantize().cStr());
  if (!type) config.refuse("model.quantize", "{}", type.why().text);
}

/// Of what the ranks of one engine on one host read, there is one copy there.
struct copies {
  explicit copies(const checked_config& c) : whole(c.model->weight_bytes), how(processes_of(c)) {}
  static schema::Processes processes_of(const checked_config& c) {
    return c.config.get().getEngines().getProcesses();
  }
  void add(const placed_rank& rank, const rank_need& need) {
    // All engines of one process share theirs.
    uint64_t& engine = of[how == schema::Processes::SHARED ? 0 : rank.engine];
    engine = how == schema::Processes::RANKS ? std::min(whole, engine + need.weights) : whole;
  }
  uint64_t bytes() const {
    uint64_t all = 0;
    for (auto [engine, own] : of) all += own;
    return all;
  }
  uint64_t whole;
  schema::Processes how;
  std::map<uint32_t, uint64_t> of;
};

/// Each device holds one rank.
void check_device_memory(checked_config& c) {
  for (size_t i = 0; i < c.layout.ranks.size(); ++i) {
    const auto& rank = c.layout.ranks[i];
    const auto& host = c.layout.hosts[rank.host];
    if (!rank.on_device() || c.needs[i].all() <= host.device_memory) continue;
    return c.config.refuse(
        "model.path",
        "too large: a rank needs {} of weights, {} for keys and values and {} to work in, {} of "
        "host {} has {}; a wider cut, or a smaller kv_memory, step_tokens or running",
        bytes_text(c.needs[i].weights), bytes_text(c.needs[i].kv), bytes_text(c.needs[i].work),
        rank.device, host.name, bytes_text(host.device_memory));
  }
}

/// A rank on a device takes no more of its host's memory than its weights go through.
void check_host_memory(checked_config& c) {
  for (uint32_t h = 0; h < c.layout.hosts.size(); ++h) {
    const auto& host = c.layout.hosts[h];
    uint64_t kv = 0, loading = 0, ranks = 0;
    copies weights(c);
    for (size_t i = 0; i < c.layout.ranks.size(); ++i) {
      const auto& rank = c.layout.ranks[i];
      if (rank.host != h) continue;
      ++ranks;
      if (rank.on_device()) {
        loading += upload_pieces * upload_piece_bytes;
        continue;
      }
      weights.add(rank, c.needs[i]);
      kv += c.needs[i].kv;
    }
    if (kv + weights.bytes() + loading > host.memory)
      c.config.refuse("model.path",
                      "too large: {} of weights, {} to load devices through and {} for keys and "
                      "values of {} ranks, host {} gives {}; quantize, a smaller kv_memory or "
                      "fewer engines",
                      bytes_text(weights.bytes()), bytes_text(loading), bytes_text(kv), ranks,
                      host.name, bytes_text(host.memory));
  }
}

/// A service's host matters for its certificate only.
void place_service(checked_config& c) {
  auto hosts = c.config.get().getHosts();
  c.layout.hosts = {{.name = "local", .address = "127.0.0.1"}};
  if (hosts.size() > 1) return c.config.refuse("hosts", "a service runs on one host");
  if (hosts.size() == 0) return;
  c.layout.hosts.front().name = hosts[0].getName().cStr();
  c.layout.hosts.front().address = hosts[0].getAddress().cStr();
}

/// Returns what is worth knowing of what was asked for by name.
std::vector<std::string> hold_against_policy(checked_config& c) {
  auto policy = check_policy(c.config.get());
  for (const auto& p : policy.problems) c.config.refuse(p.key, "{}", p.text);
  if (c.is_service() && c.config.get().getOptimizations().size() > 0)
    c.config.refuse("optimizations", "are an engine's, and this file starts none");
  return policy.notes;
}

}  // namespace

checked_config check_config(const std::filesystem::path& file, const machine& here) {
  checked_config c{cluster_config::read(file), {}, {}, {}};
  if (!c.good()) return c;
  check_services(c.config);
  bool clear = c.good();
  auto notes = hold_against_policy(c);
  if (c.is_service() || !clear) {
    place_service(c);
    return c;
  }
  check_numbers(c.config);
  c.layout = lay_out(c.config, here);
  c.layout.notes.insert(c.layout.notes.end(), notes.begin(), notes.end());
  check_listeners(c.config, c.layout.notes);
  c.model = read_model(c.config, c.layout);
  if (!c.model) return c;
  check_model(c.config, *c.model);
  if (!c.good()) return c;
  auto e = c.config.get().getEngines();
  for (const auto& rank : c.layout.ranks)
    c.needs.push_back(need_of(
        *c.model,
        part_for(c.model->shape, {e.getTensor(), e.getPipeline()}, rank.stage, rank.tensor_rank),
        c.config.get().getBatching(),
        rank.on_device() ? std::optional(arithmetic(e.getArithmetic())) : std::nullopt));
  check_device_memory(c);
  check_host_memory(c);
  return c;
}

}  // namespace lethe
