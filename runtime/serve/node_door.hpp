#pragma once

#include <mutex>

#include "runtime/crypto/refusal.hpp"
#include "runtime/serve/sealed_call.hpp"
#include "runtime/token/private_token.hpp"

namespace lethe {

/// What an engine opens of one roster, and what it remembers of that.
struct door_key {
  std::shared_ptr<const sealed_service> service;
  std::vector<token_key> issuers;  // who signs what a request must be paid with
  uint64_t until_ms = UINT64_MAX;
};

/// Where requests of the private path come into an engine. Each roster has a key of its own, which
/// never touches a disk; an older one's opens for a grace and is then gone, with all it remembers.
/// Any thread may ask.
class node_door {
 public:
  /// `remembered` seals and tokens for each key; what would be one more is refused.
  node_door(api_service api, const hash32& release, size_t remembered, answer_shape shape = {})
      : api_(std::move(api)), release_(release), remembered_(remembered), shape_(shape) {}

  /// A key for a roster that begins.
  result<node_public> begin(uint32_t roster, std::vector<token_key> issuers, uint64_t now_ms,
                            uint64_t grace_ms);
  void expire(uint64_t now_ms);

  /// The key that a message was sealed to; null: its roster is over, or it is someone else's.
  std::shared_ptr<const door_key> find(bytes_view sealed) const;
  /// Opens a request under that key once: a token or a seal that was seen is refused.
  static result<std::unique_ptr<sealed_call>> open(const door_key& key, bytes_view sealed,
                                                   bytes_view token,
                                                   std::shared_ptr<request_watcher> watcher,
                                                   sealed_call::fault& whose);
  /// The node's word that it does not take a request. Nothing where it isn't sealed to a key of it.
  std::optional<signed_refusal> refuse(bytes_view sealed, bytes_view token,
                                       refusal_reason why) const;
  size_t keys() const;
  /// As many as can be within the longest grace, a roster every five seconds, and no more.
  static constexpr size_t keys_max = 16;

 private:
  api_service api_;
  hash32 release_;
  size_t remembered_;
  answer_shape shape_;
  mutable std::mutex lock_;
  std::vector<std::shared_ptr<door_key>> keys_;  // the newest first
};

}  // namespace lethe
