#pragma once

#include "runtime/audit/small_cluster.hpp"
#include "runtime/client/private_call.hpp"

namespace lethe::audit {

/// The shipped client of one user, with files of its own. Its tokens come again, and others may
/// have the same: what is measured is where its requests go.
class small_client {
 public:
  static result<std::unique_ptr<small_client>> start(const small_cluster& cluster, uint32_t user,
                                                     std::vector<private_token> tokens);

  /// Reads log and roster anew.
  call_end look() { return view_->refresh(cluster_.now_s).end; }
  /// One request; any number of threads. `seen` is told what the client checks.
  private_answer ask(std::string_view body, std::stop_token stop = {},
                     const call_observer& seen = {}) {
    return ask_with(exposure_, body, std::move(stop), seen);
  }
  /// As a process of its own would: without any memory of earlier draws.
  private_answer ask_as_new(std::string_view body, std::stop_token stop = {});
  /// All tokens again. While nothing is asked.
  result<void> refill();

  oblivious_channel& channel() { return channel_; }
  call_result<std::shared_ptr<const cluster_state>> state() { return view_->at(cluster_.now_s); }

 private:
  small_client(const small_cluster& cluster, trust_file trust, std::vector<private_token> tokens,
               std::unique_ptr<http_client> http);
  private_answer ask_with(exposure_budget& exposure, std::string_view body, std::stop_token stop,
                          const call_observer& seen);

  const small_cluster& cluster_;
  const trust_file trust_;
  const std::vector<private_token> tokens_;
  std::unique_ptr<http_client> http_;
  oblivious_channel channel_;
  std::unique_ptr<cluster_view> view_;
  std::unique_ptr<wallet> wallet_;
  exposure_budget exposure_;
};

}  // namespace lethe::audit
