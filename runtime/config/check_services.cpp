#include "runtime/config/check_services.hpp"

#include <algorithm>
#include <set>

#include "runtime/config/listener_text.hpp"
#include "runtime/config/origin_text.hpp"

namespace lethe {

namespace {

/// What every listener of the private path has.
template <class Reader>
void check_listener(cluster_config& config, const char* section, Reader from) {
  std::string at = section;
  auto key = [&](const char* name) { return at + "." + name; };
  if (from.getListen().size() == 0)
    config.refuse(key("listen"), "is missing: ADDRESS:PORT");
  else if (!listener_text::parse(from.getListen().cStr()).valid)
    config.refuse(key("listen"), "{}", listener_form);
  if ((from.getCertificate().size() == 0) != (from.getKey().size() == 0))
    config.refuse(key(from.getKey().size() ? "key" : "certificate"),
                  "needs the other one, too: certificate and key, or neither");
}

/// "http://HOST[:PORT]", "https://...".
void check_url(cluster_config& config, const char* key, std::string_view url) {
  if (url.empty()) return config.refuse(key, "is missing: http(s)://HOST:PORT");
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    config.refuse(key, "must begin with http:// or https://");
}

void check_folder(cluster_config& config, const char* key, std::string_view folder) {
  if (folder.empty()) config.refuse(key, "is missing: what must not be lost is kept there");
}

/// What may name a signed note, with room for what is added to it.
bool is_word(std::string_view name) { return name.size() <= 200 && is_note_name(name); }

void check_witnesses(cluster_config& config) {
  auto texts = config.get().getGateway().getWitnesses();
  std::vector<note_key> seen;
  for (uint32_t i = 0; i < texts.size(); ++i) {
    auto key = fmt::format("gateway.witnesses[{}]", i);
    auto one = witness_text::parse(texts[i].cStr());
    if (!one) {
      config.refuse(key, "{}", one.why().text);
      continue;
    }
    check_url(config, key.c_str(), one->url);
    auto same = [&](const note_key& k) { return k.public_key() == one->key.public_key(); };
    if (std::ranges::any_of(seen, same)) config.refuse(key, "its key is there before");
    seen.push_back(one->key);
  }
}

void check_gateway(cluster_config& config) {
  auto g = config.get().getGateway();
  check_listener(config, "gateway", g);
  check_folder(config, "gateway.folder", g.getFolder().cStr());
  check_url(config, "gateway.issuer", g.getIssuer().cStr());
  if (is_open_way(g.getIssuer().cStr()))
    config.refuse("gateway.issuer",
                  "is plain http to another machine, and the gateway's secret is sent there; use "
                  "https");
  if (g.getIssuerSecret().size() == 0)
    config.refuse("gateway.issuer_secret",
                  "is missing: the issuer makes that file, [issuer] secret; copy it here");
  if (g.getIssuerName().size() == 0 || g.getIssuerName().size() > 255)
    config.refuse("gateway.issuer_name", "must have 1 to 255 bytes, as [issuer] name has");
  std::string_view origin =
      g.getOrigin().size() ? g.getOrigin().cStr() : config.get().getName().cStr();
  constexpr const char* word_form =
      "names the log: 1 to 200 printable characters, no blank and no '+'";
  if (!is_word(origin))
    config.refuse(g.getOrigin().size() ? "gateway.origin" : "name", "{}", word_form);
  if (g.getLog().size() && !is_word(g.getLog().cStr()))
    config.refuse("gateway.log", "{}", word_form);
  if (g.getGraceS() > g.getEpochS())
    config.refuse("gateway.grace_s", "is above epoch_s ({}): keys live one epoch and grace",
                  g.getEpochS());
  check_witnesses(config);
}

/// Web pages that may ask.
template <class Reader>
void check_origins(cluster_config& config, const char* section, Reader from) {
  std::set<std::string> seen;
  auto origins = from.getOrigins();
  for (uint32_t i = 0; i < origins.size(); ++i) {
    auto key = fmt::format("{}.origins[{}]", section, i);
    if (auto ok = check_origin(origins[i].cStr()); !ok)
      config.refuse(key, "{}", ok.why().text);
    else if (!seen.insert(origins[i].cStr()).second)
      config.refuse(key, "is there before");
  }
}

void check_issuer(cluster_config& config) {
  auto i = config.get().getIssuer();
  check_listener(config, "issuer", i);
  auto where = listener_text::parse(i.getListen().cStr());
  if (where.valid && !where.loopback && i.getCertificate().size() == 0)
    config.refuse("issuer.listen",
                  "is not on loopback, and accounts send their secrets there: give it a "
                  "certificate and key");
  check_folder(config, "issuer.folder", i.getFolder().cStr());
  if (i.getName().size() == 0 || i.getName().size() > 255)
    config.refuse("issuer.name", "must have 1 to 255 bytes: challenges carry it");
  check_origins(config, "issuer", i);
}

void check_relay(cluster_config& config) {
  auto r = config.get().getRelay();
  check_listener(config, "relay", r);
  check_url(config, "relay.gateway", r.getGateway().cStr());
  check_origins(config, "relay", r);
}

void check_witness(cluster_config& config) {
  auto w = config.get().getWitness();
  check_listener(config, "witness", w);
  check_folder(config, "witness.folder", w.getFolder().cStr());
  if (!is_word(w.getName().cStr()))
    config.refuse("witness.name", "must have 1 to 200 printable characters, no blank and no '+'");
  if (w.getLogs().size() == 0)
    config.refuse("witness.logs", "names none: the public keys of the logs that it cosigns");
  std::set<std::string> names;
  for (uint32_t i = 0; i < w.getLogs().size(); ++i) {
    auto key = fmt::format("witness.logs[{}]", i);
    auto log = note_key::parse(w.getLogs()[i].cStr());
    if (!log)
      config.refuse(key, "{}", log.why().text);
    else if (log->algorithm() != note_algorithm::ed25519)
      config.refuse(key, "is a witness's key; a log's is wanted");
    else if (!names.insert(log->name()).second)
      config.refuse(key, "{} is there before", log->name());
  }
}

}  // namespace

result<witness_text> witness_text::parse(std::string_view text) {
  const size_t blank = text.find(' ');
  if (blank == text.npos) return fail("is not \"URL KEY\"");
  auto key = note_key::parse(text.substr(blank + 1));
  if (!key) return key.why();
  if (key->algorithm() != note_algorithm::cosignature)
    return fail("has a log's key; `lethe keys public` of the witness's file prints the right one");
  return witness_text{std::string(text.substr(0, blank)), *std::move(key)};
}

void check_services(cluster_config& config) {
  auto c = config.get();
  if (c.hasIssuer() && c.hasRelay())
    return config.refuse("relay", "stands beside [issuer]: who runs both sees who asks and when");
  if (c.hasWitness() && (c.hasIssuer() || c.hasRelay()))
    return config.refuse("witness",
                         "stands beside another service: it belongs into a file of its own");
  bool service = c.hasIssuer() || c.hasRelay() || c.hasWitness();
  if (service && (c.hasModel() || c.hasGateway()))
    return config.refuse(c.hasIssuer()  ? "issuer"
                         : c.hasRelay() ? "relay"
                                        : "witness",
                         "stands beside [{}]: it belongs into a file and a process of its own",
                         c.hasModel() ? "model" : "gateway");
  if (!service && !c.hasModel()) config.refuse("model", "is missing: {}", "what is served");
  if (c.hasShape() && !c.hasGateway())
    config.refuse("shape", "shapes the answers of a [gateway], and there is none");
  if (c.hasGateway()) check_gateway(config);
  if (c.hasIssuer()) check_issuer(config);
  if (c.hasRelay()) check_relay(config);
  if (c.hasWitness()) check_witness(config);
}

}  // namespace lethe
