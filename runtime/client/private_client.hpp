#pragma once

#include <map>
#include <thread>

#include "runtime/base/unix_time.hpp"
#include "runtime/client/client_limits.hpp"
#include "runtime/client/client_times.hpp"
#include "runtime/client/private_call.hpp"

namespace lethe {

struct client_options {
  std::function<uint64_t()> now_s = unix_s, steady_s = steady_clock_s;
  /// Reads the log on a timer, claims change some time after it is due, and exchanges tokens of the
  /// key before: none of it tells of a call.
  bool on_a_timer = true;
  /// Buys a batch some hours after there is less than one, soon when there is less than half of
  /// one.
  bool keeps_stocked = false;
  uint32_t redraw_wait_ms = 500;
  uint32_t look_wait_ms = limits::look_wait_ms;
  /// Starts, too, while relay or gateway are not reached, if there is a timer to go on trying. What
  /// is reached and not to be believed is an error at any time.
  bool starts_unreached = false;
  /// Told how each look went from then on, on the timer's thread, until one is good or ends in
  /// something else than that.
  std::function<void(const call_end&)> on_look = {};
};

/// Whether it may be well later, with nothing done here.
bool may_pass(const call_end& end);

/// A client of a cluster, whole: what it believes, what it knows, its tokens, and its way there.
/// Any number of threads may call.
class private_client {
 public:
  /// Opens its files, and reads the log for the first time.
  static call_result<std::unique_ptr<private_client>> start(trust_file trust,
                                                            client_options options = {});
  static call_result<std::unique_ptr<private_client>> start(const std::filesystem::path& trust,
                                                            client_options options = {});
  /// After the last call has ended.
  ~private_client() = default;

  struct numbers {
    size_t tokens = 0;   // that may be shown
    size_t open = 0;     // shown; their change may be due
    uint32_t batch = 0;  // how many are bought at once
  };
  numbers count() const;
  /// One batch.
  call_result<size_t> buy();
  private_answer call(const private_ask& what) { return call_privately(parts(), what); }

  struct claims {
    size_t changed = 0, none_due = 0, later = 0;
    std::optional<error> why;  // of the first that went wrong otherwise
  };
  /// Asks for all that may be due.
  claims claim_pending(std::stop_token stop = {});

  const trust_file& trust() const { return trust_; }
  /// What was not reached at the start.
  const call_end& first_look() const { return first_look_; }
  /// The cluster as it is known; read anew if its roster is over.
  call_result<std::shared_ptr<const cluster_state>> state(std::stop_token stop = {}) {
    return view_->at(options_.now_s(), std::move(stop));
  }

 private:
  private_client(trust_file trust, client_options options, std::unique_ptr<http_client> http,
                 std::unique_ptr<wallet> tokens);
  call_parts parts();
  call_end refresh(std::stop_token stop);
  void run(std::stop_token stop);
  void look_again(std::stop_token stop, bool& unreached);
  void claim_some(std::stop_token stop);
  void exchange_one();
  void restock();

  const trust_file trust_;
  const client_options options_;
  std::unique_ptr<http_client> http_;
  std::unique_ptr<wallet> wallet_;
  oblivious_channel channel_;
  std::unique_ptr<cluster_view> view_;
  exposure_budget exposure_;
  call_end first_look_;
  // The timer's, in seconds of the steady clock:
  uint64_t refresh_at_ = 0, stock_at_ = 0, exchange_at_ = 0;
  restocking stock_;
  std::map<hash32, uint64_t> claim_at_;
  std::jthread timer_;  // last: it ends first
};

}  // namespace lethe
