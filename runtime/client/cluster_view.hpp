#pragma once

#include <mutex>

#include "runtime/client/check_step.hpp"
#include "runtime/client/hang_guard.hpp"
#include "runtime/client/oblivious_channel.hpp"
#include "runtime/client/view_memory.hpp"
#include "runtime/log/log_policy.hpp"
#include "runtime/log/roster.hpp"
#include "runtime/token/token_challenge.hpp"
#include "runtime/token/token_directory.hpp"

namespace lethe {

/// A cluster as its log and its gateway show it, checked against each other and against the trust
/// file. The same for all who look.
struct cluster_state {
  ohttp_config gateway_key;
  log_policy policy;
  token_challenge challenge;
  token_directory issuer;
  std::optional<hash32> release;  // digest of what the nodes run, if the log says one
  roster nodes;
  uint64_t good_until_s = 0;  // of the roster
  /// Keys whose tokens are not shown: fewer bought under them than the trust file wants.
  std::vector<hash32> small_crowds;
  std::vector<check_step> steps;

  /// What tokens are bought and changed under.
  result<token_key> token_key_at(uint64_t now_s) const;
};

/// Reads the log and what it vouches for, through the relay. Everything that was seen once is
/// remembered in files beside the wallet, whose lock stands for them.
class cluster_view {
 public:
  /// The trust file and the channel outlive it. Refused where there is evidence against this log.
  /// `steady_s` is a clock that is never set.
  static result<std::unique_ptr<cluster_view>> open(
      const trust_file& trust, oblivious_channel& channel,
      std::function<uint64_t()> steady_s = steady_clock_s);

  /// The last state that was read, while its roster is good; else reads it anew. Once a read has
  /// hung, others end at once for some seconds, and until one that is tried then has ended.
  call_result<std::shared_ptr<const cluster_state>> at(uint64_t now_s, std::stop_token stop = {});
  /// Reads and checks all of it. What fails leaves the last state to whoever may still use it,
  /// unless there is evidence: then nothing is given out any more.
  call_result<std::shared_ptr<const cluster_state>> refresh(uint64_t now_s,
                                                            std::stop_token stop = {});

 private:
  struct looking;  // one refresh
  cluster_view(const trust_file& trust, oblivious_channel& channel, view_memory memory,
               std::function<uint64_t()> steady_s);
  call_end look(looking& l);
  call_end look_with(looking& l, const std::vector<std::byte>& keys);
  call_end read_log(looking& l);
  call_end read_policy(looking& l);
  void read_crowds(looking& l);
  call_end read_roster(looking& l);
  call_end keep(view_memory next);
  call_end keep_evidence(const error& why);

  const trust_file& trust_;
  oblivious_channel& channel_;
  const std::function<uint64_t()> steady_s_;
  std::mutex reading_;  // one refresh at a time
  log_reader reader_;
  view_memory memory_;
  std::mutex mutex_;  // of what follows
  std::shared_ptr<const cluster_state> last_;
  hang_guard hangs_;
};

/// Whether the policy of a log is one that a trust file accepts.
result<void> check_policy(const log_policy& policy, const trust_file& trust);

}  // namespace lethe
