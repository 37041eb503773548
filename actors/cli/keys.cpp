#include <fmt/format.h>

#include "actors/cli/commands.hpp"
#include "actors/cluster/open_gateway.hpp"
#include "runtime/client/trust_file.hpp"
#include "runtime/config/check_config.hpp"
#include "runtime/config/check_services.hpp"
#include "runtime/crypto/cluster_keys.hpp"
#include "runtime/witness/witness_server.hpp"

namespace lethe {

namespace {

std::vector<named_host> hosts_of(const cluster_layout& layout) {
  std::vector<named_host> hosts;
  for (const auto& h : layout.hosts) hosts.push_back({h.name, h.address});
  return hosts;
}

int init(const std::string& file, uint32_t days) {
  auto checked = check_config(file, machine::here());
  for (const auto& problem : checked.config.problems()) fmt::print(stderr, "{}\n", problem);
  if (!checked.good()) return refuse(file + ": mend it first; no key was made");
  std::string folder = checked.config.get().getTls().getFolder().cStr();
  if (folder.empty()) return refuse(file + ": [tls] folder is not set: say where keys belong");
  auto made =
      make_cluster_keys(checked.config.resolve(folder), checked.config.get().getName().cStr(),
                        hosts_of(checked.layout), days);
  if (!made) return refuse(made.why().text);
  for (const auto& path : made->kept) fmt::print("kept   {}\n", path.string());
  for (const auto& path : made->written) fmt::print("wrote  {}\n", path.string());
  fmt::print(
      "Give every host ca.crt and its own HOST.crt and HOST.key, nothing else: whoever ca.key "
      "signs is "
      "in the cluster.\n");
  return 0;
}

struct public_words {
  std::string file;
  std::vector<std::string> relays;
  std::string authorities;
  std::optional<uint32_t> quorum;
};

/// The cluster's own witness first.
std::vector<note_key> witnesses_of(const cluster_config& config, const note_key& own) {
  std::vector<note_key> all{own};
  for (auto text : config.get().getGateway().getWitnesses())
    if (auto one = witness_text::parse(text.cStr())) all.push_back(std::move(one->key));
  return all;
}

int show_witness(const cluster_config& config) {
  auto w = config.get().getWitness();
  auto key = keep_witness_key(config.resolve(w.getFolder().cStr()), w.getName());
  if (!key) return refuse(key.why().text);
  fmt::print("{}\n", key->text());
  return 0;
}

/// What a client's trust file says of this cluster. The keys are made if they are not there yet, so
/// that clients can be told before the first start.
int show_public(const public_words& words) {
  auto checked = check_config(words.file, machine::here());
  for (const auto& problem : checked.config.problems()) fmt::print(stderr, "{}\n", problem);
  if (!checked.good()) return refuse(words.file + ": mend it first");
  if (checked.config.get().hasWitness()) return show_witness(checked.config);
  if (!checked.config.get().hasGateway())
    return refuse(words.file + ": has neither [gateway] nor [witness], so nothing is published");
  if (words.relays.empty()) return refuse("--relay is missing: a relay's URL, as clients reach it");
  for (const auto& url : words.relays)
    if (auto at = server_at::from_url(url); !at)
      return refuse(fmt::format("--relay {}: {}", url, at.why().text));
  auto setup = publish_setup_of(checked.config);
  auto keys = keep_public_keys(setup);
  if (!keys) return refuse(keys.why().text);
  auto witnesses = witnesses_of(checked.config, keys->witness);
  const auto known = uint32_t(witnesses.size());
  if (words.quorum.value_or(0) > known)
    return refuse(fmt::format("--quorum {}: there are {} witnesses", *words.quorum, known));
  trust_text text{.log = keys->log,
                  .witnesses = std::move(witnesses),
                  .quorum = words.quorum.value_or(known),
                  .relays = words.relays,
                  .origin = setup.origin,
                  .issuer = checked.config.get().getGateway().getIssuer(),
                  .issuer_name = setup.issuer,
                  .authorities = words.authorities,
                  .evidence = {std::string(no_evidence)},
                  .policy = {.name = publisher::policy_name,
                             .candidates_max = setup.candidates,
                             .nodes_min = setup.minimum_nodes,
                             .roster_age_max_s = setup.roster_age_max_s(),
                             .shape = setup.shape.mode()}};
  fmt::print("{}", text.toml());
  return 0;
}

void add_public(CLI::App& keys, int& exit_code) {
  auto* shows = keys.add_subcommand(
      "public",
      "What clients must believe: a trust file; of a witness, its key for logs and clients");
  auto words = std::make_shared<public_words>();
  shows->add_option("FILE", words->file, "the file that has the [gateway] or the [witness]")
      ->required();
  shows->add_option("--relay", words->relays,
                    "a relay's URL, as clients reach it; may come again; needed with a [gateway]");
  shows->add_option("--authorities", words->authorities,
                    "PEM file of who vouches for relay and issuer; none: the system's");
  shows->add_option("--quorum", words->quorum,
                    "how many of the witnesses must have signed; default: all");
  shows->footer(
      "Give it to clients by a way that nobody between can change: whoever writes this file is "
      "who\n"
      "they believe. Nodes are not attested yet, and the file says so: evidence = [\"none\"].\n"
      "Example:\n"
      "  lethe keys public configs/private.toml --relay http://127.0.0.1:8300 > client.toml\n"
      "  lethe keys public configs/witness.toml");
  shows->callback([=, &exit_code] { exit_code = show_public(*words); });
}

}  // namespace

void add_keys(CLI::App& app, int& exit_code) {
  auto* keys = app.add_subcommand(
      "keys", "The cluster's authority and its hosts' certificates; what clients must believe");
  keys->require_subcommand(1);
  auto* inits = keys->add_subcommand(
      "init", "Make what is missing: ca.crt, ca.key, and HOST.crt, HOST.key for each host");
  auto file = std::make_shared<std::string>();
  auto days = std::make_shared<uint32_t>(365);
  inits->add_option("FILE", *file, "the cluster's TOML file; [tls] folder says where")->required();
  inits->add_option("--days", *days, "that certificates are valid")
      ->check(CLI::Range(1, 3650))
      ->capture_default_str();
  inits->footer("Example:\n  lethe keys init configs/two-hosts.toml");
  inits->callback([=, &exit_code] { exit_code = init(*file, *days); });
  add_public(*keys, exit_code);
}

}  // namespace lethe
