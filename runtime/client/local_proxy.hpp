#pragma once

#include "runtime/client/private_client.hpp"
#include "runtime/http/http_server.hpp"

namespace lethe {

/// What a node may be asked for.
inline constexpr std::string_view call_paths[] = {"/v1/chat/completions", "/v1/completions"};

/// OpenAI's API for the applications of this machine: what they post to /v1/chat/completions and
/// /v1/completions goes to a cluster as a private call. Of their requests nothing leaves but the
/// body, without what labels its user.
class local_proxy {
 public:
  /// Told each step of each call, by the call's number, on any thread; the last is named "call".
  using watcher = std::function<void(uint64_t call, const check_step&)>;

  /// On loopback only: requests are in the clear here. So many calls run at once, as many wait.
  /// The client outlives it.
  static result<std::unique_ptr<local_proxy>> start(private_client& client,
                                                    const std::string& address,
                                                    uint32_t calls_max = 32, watcher watch = {});
  ~local_proxy();  // calls in flight are stopped
  local_proxy(const local_proxy&) = delete;
  local_proxy& operator=(const local_proxy&) = delete;

  const std::vector<http_listener>& bound() const;

 private:
  class desk;
  explicit local_proxy(std::unique_ptr<desk> d);
  std::unique_ptr<desk> desk_;
};

}  // namespace lethe
