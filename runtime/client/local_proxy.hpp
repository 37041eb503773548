#pragma once

#include "runtime/client/private_client.hpp"
#include "runtime/http/http_server.hpp"

namespace lethe {

/// OpenAI's API for the applications of this machine: what they post to /v1/chat/completions and
/// /v1/completions goes to a cluster as a private call. Of their requests nothing leaves but the
/// body, without what labels its user.
class local_proxy {
 public:
  /// Hears of streams that an application has, and that their node's receipt doesn't prove.
  using unproven = std::function<void(const error& why)>;

  /// On loopback only: requests are in the clear here. So many calls run at once, as many wait.
  /// The client outlives it.
  static result<std::unique_ptr<local_proxy>> start(private_client& client,
                                                    const std::string& address,
                                                    uint32_t calls_max = 32, unproven tell = {});
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
