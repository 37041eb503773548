#pragma once

#include <filesystem>
#include <functional>

#include "actors/audit/child.hpp"
#include "runtime/audit/memory_scan.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/client/private_client.hpp"

namespace lethe::audit {

/// What its clients call the model, whichever it serves.
inline constexpr std::string_view model_name = "audited";

struct embedded_settings {
  std::string program;  // this one, or one without a defence
  std::filesystem::path model;
  std::string profile = "strict", shape = "size_tick";
  unsigned engines = 1;
  unsigned ranks = 1;                    // of each engine; more are processes
  unsigned epoch_s = 600, grace_s = 60;  // of rosters
};

/// What one call said.
struct said {
  std::string body;
  uint32_t status = 0;
  std::optional<receipt> proof;
  std::string why;  // it isn't whole
};

/// Asks as any client does; `began` is called with each piece of the answer, and may end it.
said ask(private_client& client, const std::string& body,
         const std::string& path = "/v1/chat/completions", std::function<bool()> began = {});

/// Issuer, relay, gateway and engines on this machine, each in processes of its own, and a client
/// in this one: all of the private path, as its users run it.
class embedded_cluster {
 public:
  static result<std::unique_ptr<embedded_cluster>> start(const embedded_settings& settings);

  said ask(const std::string& body, const std::string& path = "/v1/chat/completions",
           std::function<bool()> began = {}) {
    return audit::ask(*client_, body, path, std::move(began));
  }
  /// Another client with a batch of tokens, whose files are in a folder of that name, and who comes
  /// by that relay.
  result<std::unique_ptr<private_client>> new_client(const std::string& name,
                                                     const std::string& relay) const;
  result<std::string> relay() const;
  /// Roster and keys, as its clients see them now.
  result<std::shared_ptr<const cluster_state>> state();
  /// Of the cluster, and of the engines alone; ranks that are processes come behind them.
  std::vector<pid_t> processes() const;
  std::vector<pid_t> engines() const;
  /// What it has written lies below.
  const std::filesystem::path& folder() const { return folder_.path(); }
  /// All of its processes, none of which runs meanwhile, and what is in those folders.
  memory_search search(const needle_finder& finder,
                       const std::vector<std::filesystem::path>& folders) const;
  memory_search search(const needle_finder& finder) const { return search(finder, {folder()}); }
  /// Waits until all engines are ready.
  bool is_whole(std::chrono::seconds patience) const;
  /// Tells gateway and engines to end when they have answered, and waits until they have.
  void drain();
  bool drained(std::chrono::seconds patience);
  result<std::string> command(std::vector<std::string> words) const;
  /// The trust file of clients; `alone` ends the one in this process, for another that has its
  /// wallet.
  std::string trust() const { return (folder() / "client" / "trust.toml").string(); }
  void alone() { client_.reset(); }

 private:
  embedded_cluster(embedded_settings settings, temporary_folder folder)
      : settings_(std::move(settings)), folder_(std::move(folder)) {}
  result<void> start_all();
  result<void> start_part(std::unique_ptr<child>& part, const std::string& file);

  embedded_settings settings_;
  temporary_folder folder_;
  std::unique_ptr<child> issuer_, gateway_, relay_;
  std::string gateway_file_;
  std::unique_ptr<private_client> client_;
};

/// Searches until there is nothing, within bounds, for what a cluster has yet to hear of.
std::vector<trace_of> soon_left(const std::function<std::vector<trace_of>()>& search);

}  // namespace lethe::audit
