#pragma once

#include <atomic>
#include <filesystem>
#include <thread>

#include "actors/cluster/messages.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// Where the operator's commands find a running cluster on this host. Only its user can open it.
result<std::filesystem::path> control_path(const std::string& cluster);
/// The clusters of this user that listen on this host.
std::vector<std::string> running_clusters();

/// Takes the operator's requests, one connection at a time, and passes them to the directory.
class control_server {
 public:
  using answerer = std::function<wire<schema::ControlAnswer>(const wire<schema::ControlAsk>&)>;

  /// Refuses where another cluster of that name answers already.
  static result<std::unique_ptr<control_server>> start(const std::string& cluster, answerer answer);
  ~control_server();
  /// Answers nothing more, but goes on being seen.
  void stop();

 private:
  control_server(int fd, int wake, std::filesystem::path path, answerer answer);
  void run();
  void serve(int connection);

  int fd_, wake_;
  std::filesystem::path path_;
  answerer answer_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// Asks a running cluster. Errors say how to start one.
result<wire<schema::ControlAnswer>> ask_cluster(const std::string& cluster,
                                                const wire<schema::ControlAsk>& ask);

}  // namespace lethe
