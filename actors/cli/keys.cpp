#include <fmt/format.h>

#include "actors/cli/commands.hpp"
#include "runtime/config/check_config.hpp"
#include "runtime/crypto/cluster_keys.hpp"

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

}  // namespace

void add_keys(CLI::App& app, int& exit_code) {
  auto* keys = app.add_subcommand("keys", "The cluster's authority and its hosts' certificates");
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
}

}  // namespace lethe
