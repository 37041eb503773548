#include "actors/cluster/open_service.hpp"

#include "runtime/issuer/issuer.hpp"
#include "runtime/relay/relay.hpp"
#include "runtime/witness/witness_server.hpp"

namespace lethe {

namespace {

web_origins origins_of(capnp::List<capnp::Text>::Reader texts) {
  std::vector<std::string> allowed;
  for (auto text : texts) allowed.emplace_back(text.cStr());
  return web_origins(std::move(allowed));
}

class relay_service final : public service {
 public:
  explicit relay_service(std::unique_ptr<relay> r) : relay_(std::move(r)) {}

  const char* role() const override { return "relay"; }
  const std::vector<http_listener>& bound() const override { return relay_->bound(); }
  std::vector<std::pair<std::string, uint64_t>> counts() const override {
    auto n = relay_->numbers();
    return {
        {"passed on", n.exchanges}, {"open", n.open}, {"refused", n.refused}, {"failed", n.failed}};
  }
  std::string note() const override { return relay_->trouble(); }
  void stop_accepting() override { relay_->stop_accepting(); }
  uint64_t open_exchanges() const override { return relay_->numbers().open; }

 private:
  std::unique_ptr<relay> relay_;
};

class issuer_service final : public service {
 public:
  explicit issuer_service(std::unique_ptr<issuer> i) : issuer_(std::move(i)) {}

  const char* role() const override { return "issuer"; }
  const std::vector<http_listener>& bound() const override { return issuer_->bound(); }
  std::vector<std::pair<std::string, uint64_t>> counts() const override {
    auto n = issuer_->numbers();
    return {{"accounts", n.accounts}, {"bought", n.bought}, {"changed", n.changed},
            {"refused", n.refused},   {"failed", n.failed}, {"open", n.open}};
  }
  std::string note() const override {
    auto trouble = issuer_->trouble();
    return fmt::format("token epoch {}{}{}", issuer_->numbers().epoch, trouble.empty() ? "" : "; ",
                       trouble);
  }
  void stop_accepting() override { issuer_->stop_accepting(); }
  uint64_t open_exchanges() const override { return issuer_->numbers().open; }

 private:
  std::unique_ptr<issuer> issuer_;
};

class witness_service final : public service {
 public:
  explicit witness_service(std::unique_ptr<witness_server> w) : witness_(std::move(w)) {}

  const char* role() const override { return "witness"; }
  const std::vector<http_listener>& bound() const override { return witness_->bound(); }
  std::vector<std::pair<std::string, uint64_t>> counts() const override {
    auto n = witness_->numbers();
    return {
        {"cosigned", n.cosigned}, {"refused", n.refused}, {"failed", n.failed}, {"open", n.open}};
  }
  std::string note() const override { return witness_->trouble(); }
  void stop_accepting() override { witness_->stop_accepting(); }
  uint64_t open_exchanges() const override { return witness_->numbers().open; }

 private:
  std::unique_ptr<witness_server> witness_;
};

result<std::shared_ptr<service>> open_relay(const checked_config& config) {
  auto r = config.config.get().getRelay();
  auto gateway = read_url(r.getGateway().cStr());
  if (!gateway) return gateway.why();
  relay_config made{.listen = {{"relay", r.getListen(),
                                identity_at(config.config, r.getCertificate(), r.getKey())}},
                    .gateway = gateway->first,
                    .gateway_path = gateway->second,
                    .trust = trust_at(config.config, r.getAuthorities()),
                    .connections_max = r.getConnections(),
                    .origins = origins_of(r.getOrigins())};
  auto started = relay::start(made);
  if (!started) return started.why();
  return std::shared_ptr<service>(std::make_shared<relay_service>(*std::move(started)));
}

result<std::shared_ptr<service>> open_issuer(const checked_config& config) {
  auto i = config.config.get().getIssuer();
  issuer_config made{.listen = {{"issuer", i.getListen(),
                                 identity_at(config.config, i.getCertificate(), i.getKey())}},
                     .folder = config.config.resolve(i.getFolder().cStr()),
                     .epoch_s = i.getEpochS(),
                     .batch = i.getBatch(),
                     .origins = origins_of(i.getOrigins())};
  if (i.getSecret().size() > 0) made.secret = config.config.resolve(i.getSecret().cStr());
  auto started = issuer::start(made);
  if (!started) return started.why();
  return std::shared_ptr<service>(std::make_shared<issuer_service>(*std::move(started)));
}

result<std::shared_ptr<service>> open_witness(const checked_config& config) {
  auto w = config.config.get().getWitness();
  witness_config made{.listen = {{"witness", w.getListen(),
                                  identity_at(config.config, w.getCertificate(), w.getKey())}},
                      .folder = config.config.resolve(w.getFolder().cStr()),
                      .name = w.getName()};
  for (auto text : w.getLogs()) {
    auto log = note_key::parse(text.cStr());
    if (!log) return log.why();
    made.logs.push_back(*std::move(log));
  }
  auto started = witness_server::start(made);
  if (!started) return started.why();
  return std::shared_ptr<service>(std::make_shared<witness_service>(*std::move(started)));
}

}  // namespace

std::optional<http_identity> identity_at(const cluster_config& config,
                                         capnp::Text::Reader certificate, capnp::Text::Reader key) {
  if (certificate.size() == 0) return {};
  return http_identity{config.resolve(certificate.cStr()), config.resolve(key.cStr())};
}

http_trust trust_at(const cluster_config& config, capnp::Text::Reader authorities) {
  if (authorities.size() == 0) return {};
  return {config.resolve(authorities.cStr())};
}

result<std::shared_ptr<service>> open_service(const checked_config& config) {
  auto c = config.config.get();
  if (c.hasWitness()) return open_witness(config);
  return c.hasIssuer() ? open_issuer(config) : open_relay(config);
}

}  // namespace lethe
