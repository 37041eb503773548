#pragma once

#include <memory>

#include "runtime/base/limits.hpp"
#include "runtime/crypto/ohttp_config.hpp"
#include "runtime/crypto/ohttp_head.hpp"
#include "runtime/crypto/seen_seals.hpp"

namespace lethe {

/// A gateway's keys, in memory only: the current and the next one are published, those before are
/// accepted for one grace period after they were retired. No clock inside: whoever calls says
/// what time it is, always in the same unit. Used by one thread at a time.
///
/// The memory of seals dies with the process. A key must not outlive it: one that is derived from
/// the same bytes after a restart opens again what it opened before.
class ohttp_keys {
 public:
  struct settings {
    hpke_suite suite;
    uint64_t grace = 0;
    size_t seals_max = limits::seals_remembered_max;  // that each key remembers
    uint8_t first_id = 1;  // best drawn: a client must not take a key for one of an earlier process
  };

  /// A key that requests are opened with, and what it opened.
  struct accepted {
    uint8_t id;
    hpke_key key;
    std::shared_ptr<seen_seals> seen;
    uint64_t until;  // exclusive; of a published key, for ever
  };

  ohttp_keys(ohttp_keys&&) = default;
  ohttp_keys& operator=(ohttp_keys&&) = default;
  static result<ohttp_keys> make(const settings& with);  // with random keys
  static result<ohttp_keys> make(const settings& with, hpke_key current, hpke_key next);

  /// The current key retires, the next one is current, a new one is next. Its id follows the
  /// last one's, past those that are still accepted; without a free one nothing changes.
  result<void> rotate(uint64_t now);
  result<void> rotate(uint64_t now, hpke_key next);
  /// Destroys the keys whose grace is over.
  void forget(uint64_t now);

  /// The key that such a request is sealed to; null if it is unknown, expired or of another suite.
  /// Valid until a key is added or destroyed.
  const accepted* find(const ohttp_head& head, uint64_t now) const noexcept;
  /// application/ohttp-keys: the current key, then the next one.
  std::vector<std::byte> published() const;
  uint8_t current_id() const noexcept { return current().id; }
  size_t size() const noexcept { return keys_.size(); }

 private:
  explicit ohttp_keys(const settings& with) : with_(with) {}
  result<void> add(hpke_key key);
  result<uint8_t> free_id() const;
  const accepted& current() const noexcept { return keys_[keys_.size() - 2]; }

  settings with_;
  std::vector<accepted> keys_;  // oldest first; the last two are published
};

}  // namespace lethe
