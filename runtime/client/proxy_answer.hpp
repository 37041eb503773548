#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "runtime/api/api_error.hpp"
#include "runtime/client/private_call.hpp"
#include "runtime/client/wiping_memory.hpp"
#include "runtime/http/http_server.hpp"

namespace lethe {

/// What an application's client library understands of it. It repeats by itself what may be
/// repeated, and nothing else.
api_error to_api_error(const call_end& end);

/// A body without the parameters that tell one user from another. Refuses what is no JSON object.
result<std::pmr::string> without_labels(std::string_view body, std::pmr::memory_resource* memory);

/// One answer on its way from a node to an application. A stream goes on as it comes, its end mark
/// too, and stays open for the node's receipt, whose lack it tells. Any other answer goes on once
/// it is whole: its receipt, behind as much padding as answer, is for the log.
class proxy_answer final : public inner_sink {
 public:
  /// At most that much is written and not with the network.
  static constexpr size_t window_bytes = size_t{256} << 10;
  static constexpr size_t whole_bytes_max = size_t{64} << 20;

  proxy_answer(http_server& to, uint64_t id) : to_(to), id_(id), held_(&memory_) {}

  // On the caller's thread:
  bool head(uint32_t status, std::span<const bhttp_field> fields) override;
  bool content(std::string_view piece) override;
  void whole() override;
  void end(const call_end& how);

  // On the server's:
  void drained(size_t bytes);
  /// Nobody reads on. What follows the answer's end is taken all the same: if padding stopped, that
  /// would tell the network where it ended.
  void leave();
  // On any:
  void stop();
  /// Whether the application has all of it, whatever follows.
  bool handed_on() const;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void look_for_mark(std::string_view piece);
  bool write(std::string_view piece);
  void fail(const call_end& how);

  http_server& to_;
  const uint64_t id_;
  std::stop_source stop_;
  wiping_memory memory_;
  std::pmr::string held_;  // an answer that is no stream; the last bytes of one
  http_answer head_;
  bool streams_ = false, too_large_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool handed_on_ = false, left_ = false;
  size_t undrained_ = 0;
};

}  // namespace lethe
