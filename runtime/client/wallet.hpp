#pragma once

#include <filesystem>
#include <mutex>
#include <set>

#include "runtime/base/locked_file.hpp"
#include "runtime/client/wallet_content.hpp"
#include "runtime/crypto/key_bytes.hpp"

namespace lethe {

/// A token on its way out, and the change that is asked for with it.
struct token_offer {
  private_token token;
  token_request change;
};

/// Tokens in a file that only its owner's key opens: FILE, FILE.key beside it, and FILE.lock, which
/// keeps other processes out and knows how old the file may be. Every change is on the disk before
/// it is told of, so whatever ends the process, no token is offered twice. Any thread may ask.
class wallet {
 public:
  /// Makes what is missing. What was on its way when an earlier process ended is to be claimed.
  static result<std::unique_ptr<wallet>> open(const std::filesystem::path& file);

  struct numbers {
    size_t tokens = 0;  // to be spent
    size_t open = 0;    // shown, and their fate unknown
  };
  numbers count() const;
  size_t count(const hash32& key_id) const;

  result<void> add(std::span<const private_token> bought);
  /// One at random of those for that challenge, in use from here on; nothing if there is none.
  /// Its change is to be signed by `change_under`.
  result<std::optional<token_offer>> take(const token_key& change_under,
                                          const hash32& challenge_digest);
  /// Of a token in use, by its nonce:
  result<void> put_back(const hash32& nonce);  // nothing of it has left this machine
  result<void> forget(const hash32& nonce);    // it was answered for, or is lost
  void leave_open(const hash32& nonce);        // nobody here knows; it may be claimed
  /// The token that came as its change. An answer that no key signed leaves all as it was.
  result<void> take_change(const hash32& nonce, bytes_view response);

  /// What may be claimed, by nonces: all that is not in use by a call of this process.
  std::vector<hash32> claimable() const;
  /// As it was offered first.
  result<token_offer> offer_again(const hash32& nonce) const;
  /// Drops what is of other keys than these: nobody redeems or changes it any more.
  result<size_t> retire(std::span<const hash32> live_keys);

 private:
  wallet(std::filesystem::path file, locked_file lock, bytes_view key)
      : file_(std::move(file)), lock_(std::move(lock)), key_(key) {}
  result<void> read();
  result<uint64_t> least_generation() const;
  /// Changes a copy and keeps it once it is on the disk.
  template <class Change>
  result<void> change(Change how);
  result<void> write(const wallet_content& next);
  error lost() const;

  std::filesystem::path file_;
  locked_file lock_;
  key_bytes key_;
  mutable std::mutex mutex_;
  wallet_content has_;
  std::set<hash32> in_use_;
  bool broken_ = false;
};

}  // namespace lethe
