#include "actors/cluster/open_gateway.hpp"

#include "actors/cluster/open_engine.hpp"
#include "actors/cluster/open_service.hpp"
#include "runtime/config/check_services.hpp"
#include "runtime/config/shape_of.hpp"
#include "runtime/log/log_limits.hpp"
#include "runtime/store/key_file.hpp"

namespace lethe {

namespace {

constexpr http_client_limits issuer_limits{
    .body_bytes_max = uint64_t{1} << 20, .answer_ms = 10'000, .stall_ms = 10'000};

/// A gateway is named by its log's key there: the origin is the same for all that share it.
result<std::unique_ptr<spend_ledger>> open_ledger(const cluster_config& config,
                                                  const note_key& log) {
  auto g = config.get().getGateway();
  if (g.getRedis().size() > 0) return open_redis_spends(g.getRedis().cStr(), log.text());
  auto file = config.resolve(g.getFolder().cStr()) / "spends.db";
  return open_sqlite_spends({.file = file});
}

constexpr http_client_limits witness_limits{
    .body_bytes_max = limits::log_note_bytes_max, .answer_ms = 10'000, .stall_ms = 10'000};

result<void> open_witnesses(const cluster_config& config, gateway_setup& setup) {
  auto g = config.get().getGateway();
  if (g.getWitnesses().size() == 0) return {};
  for (auto text : g.getWitnesses()) {
    auto one = witness_text::parse(text.cStr());
    if (!one) return one.why();
    auto at = read_url(one->url);
    if (!at) return at.why();
    while (at->second.ends_with('/')) at->second.pop_back();
    setup.witnesses.push_back({at->first, at->second + "/add-checkpoint", std::move(one->key)});
  }
  auto client = http_client::start(witness_limits, trust_at(config, g.getWitnessAuthorities()));
  if (!client) return client.why();
  setup.witness_client = *std::move(client);
  return {};
}

/// The first line of the file that issuer and gateway share.
result<std::string> read_secret(const std::filesystem::path& path) {
  auto bytes = read_key(path, {32, 256});
  if (!bytes)
    return fail("{}; the issuer makes that file when it first starts, [issuer] secret",
                bytes.why().text);
  auto text = as_text(bytes->view());
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace

publish_setup publish_setup_of(const cluster_config& config) {
  auto g = config.get().getGateway();
  std::string origin = g.getOrigin().size() ? g.getOrigin() : config.get().getName();
  return {.folder = config.resolve(g.getFolder().cStr()),
          .log = g.getLog().size() ? g.getLog().cStr() : origin,
          .origin = origin,
          .issuer = g.getIssuerName(),
          .candidates = g.getCandidates(),
          .minimum_nodes = g.getMinimumNodes(),
          .batch = g.getTokenBatch(),
          .epoch_s = g.getEpochS(),
          .grace_s = g.getGraceS(),
          .shape = shape_of(config.get().getShape()),
          .release = program_digest(),
          .witnessed = g.getWitnesses().size() > 0};
}

result<gateway_setup> open_gateway(const checked_config& config) {
  auto g = config.config.get().getGateway();
  gateway_setup setup{.epoch_s = g.getEpochS(), .grace_s = g.getGraceS()};
  auto issuer = read_url(g.getIssuer().cStr());
  if (!issuer) return issuer.why();
  auto secret = read_secret(config.config.resolve(g.getIssuerSecret().cStr()));
  if (!secret) return secret.why();
  setup.issuer = {issuer->first, *std::move(secret)};
  auto publish = publisher::open(publish_setup_of(config.config));
  if (!publish) return publish.why();
  setup.publish = *std::move(publish);
  auto ledger = open_ledger(config.config, setup.publish->note_keys().log);
  if (!ledger) return ledger.why();
  setup.spends = std::make_shared<spend_store>(*std::move(ledger));
  auto client =
      http_client::start(issuer_limits, trust_at(config.config, g.getIssuerAuthorities()));
  if (!client) return client.why();
  setup.client = *std::move(client);
  if (auto ok = open_witnesses(config.config, setup); !ok) return ok.why();
  return setup;
}

}  // namespace lethe
