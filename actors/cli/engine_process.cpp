#include <charconv>

#include "actors/cli/commands.hpp"
#include "actors/cluster/process_house.hpp"
#include "actors/cluster/rank_process.hpp"
#include "parallel/devices.hpp"

namespace lethe {

namespace {

std::optional<directory_address> address_of(const std::string& text) {
  size_t colon = text.rfind(':');
  if (colon == text.npos) return {};
  directory_address at{.address = text.substr(0, colon)};
  const char* end = text.data() + text.size();
  auto [rest, wrong] = std::from_chars(text.data() + colon + 1, end, at.port);
  if (wrong != std::errc() || rest != end) return {};
  return at;
}

/// Which keys a child may show.
std::shared_ptr<node_tls> tls_options(CLI::App& command) {
  auto tls = std::make_shared<node_tls>();
  command.add_option("--certificate", tls->certificate)->required();
  command.add_option("--key", tls->key)->required();
  command.add_option("--authority", tls->authority)->required();
  return tls;
}

}  // namespace

/// What `lethe up` starts; not shown in the help.
void add_engine_process(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("engine-process", "")->group("");
  auto directory = std::make_shared<std::string>();
  auto leader = std::make_shared<std::string>();
  command->add_option("--directory", *directory)->required();
  command->add_option("--leader", *leader)->required();
  auto tls = tls_options(*command);
  command->callback([=, &exit_code] {
    auto at = address_of(*directory);
    if (at) at->leader = *leader;
    exit_code = at ? run_engine_process(*at, *tls, *devices_of_this_build())
                   : refuse("--directory must be ADDRESS:PORT");
  });
}

/// What an engine's process starts, or the supervisor of another host, where each rank is one.
void add_rank_process(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("rank-process", "")->group("");
  auto rank = std::make_shared<uint32_t>(0);
  auto beside = std::make_shared<bool>(false);
  command->add_option("RANK", *rank)->required();
  command->add_flag("--beside", *beside);
  auto tls = tls_options(*command);
  command->callback([=, &exit_code] {
    exit_code = run_rank_process(*rank, *tls, *beside, *devices_of_this_build());
  });
}

}  // namespace lethe
