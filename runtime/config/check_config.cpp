#include "runtime/config/check_config.hpp"

#include "runtime/config/check_listeners.hpp"
#include "runtime/config/check_policy.hpp"
#include "runtime/config/check_services.hpp"
#include "runtime/config/plan_memory.hpp"
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
}

/// Also where the model is not on this machine.
void check_type(cluster_config& config) {
  auto name = config.get().getModel().getQuantize();
  if (name.size() == 0) return;
  if (auto type = dtype_named(name.cStr()); !type)
    config.refuse("model.quantize", "{}", type.why().text);
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
  checked_config c{cluster_config::read(file), {}, {}, {}, 0};
  if (!c.good()) return c;
  check_services(c.config);
  bool clear = c.good();
  auto notes = hold_against_policy(c);
  if (c.is_service() || !clear) {
    place_service(c);
    return c;
  }
  check_numbers(c.config);
  check_type(c.config);
  c.layout = lay_out(c.config, here);
  c.layout.notes.insert(c.layout.notes.end(), notes.begin(), notes.end());
  check_listeners(c.config, c.layout.notes);
  c.model = read_model(c.config, c.layout);
  if (!c.model) return c;
  check_model(c.config, *c.model);
  if (c.good()) plan_memory(c);
  return c;
}

}  // namespace lethe
