#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "runtime/client/wallet_journal.hpp"

namespace lethe {

/// A token on its way out, and the change that is asked for with it.
struct token_offer {
  private_token token;
  token_request change;
};

/// Tokens in files that only their owner's key opens: FILE, FILE.key beside it, and FILE.journal,
/// which keeps other processes out, has what changed since FILE was written, and knows how old FILE
/// may be. What is shown, bought or changed is on the disk before it is told of, so whatever ends
/// the process, no token is offered twice. Any thread may ask; those that wait for the disk
/// together share one sync, and who only counts waits for none.
class wallet {
 public:
  /// Makes what is missing. What was on its way when an earlier process ended is to be claimed.
  static result<std::unique_ptr<wallet>> open(const std::filesystem::path& file);
  static result<std::unique_ptr<wallet>> open(std::unique_ptr<wallet_disk> disk, bytes_view key,
                                              std::string name);
  /// As it is on the disk, to be counted while another process may have it; nothing that is done to
  /// this one is kept.
  static result<std::unique_ptr<wallet>> view(const std::filesystem::path& file);
  ~wallet();
  wallet(const wallet&) = delete;

  struct numbers {
    size_t tokens = 0;  // to be spent
    size_t open = 0;    // shown, and their fate unknown
    bool operator==(const numbers&) const = default;
  };
  numbers count() const;
  size_t count(const hash32& key_id) const;
  /// By the keys that signed them.
  std::map<hash32, numbers> count_by_key() const;

  result<void> add(std::span<const private_token> bought);
  /// One at random of those for that challenge and not of those keys, in use from here on; nothing
  /// if there is none. Its change is to be signed by `change_under`.
  result<std::optional<token_offer>> take(const token_key& change_under,
                                          const hash32& challenge_digest,
                                          std::span<const hash32> not_of = {});
  /// The same, of those only that another key signed.
  result<std::optional<token_offer>> take_leftover(const token_key& change_under,
                                                   const hash32& challenge_digest);
  /// Of a token in use, by its nonce. The first two are on the disk with the next change, or when
  /// this wallet is closed: if a crash comes first, the token may be claimed.
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
  using locked = std::unique_lock<std::mutex>;

  wallet(std::unique_ptr<wallet_disk> disk, bytes_view key, std::string name)
      : name_(std::move(name)), disk_(std::move(disk)), journal_(*disk_, key, name_) {}
  error lost() const;
  result<wallet_spend> spend_of(const hash32& nonce) const;
  template <class Fits>
  result<std::optional<token_offer>> show(const token_key& change_under, const hash32& digest,
                                          Fits fits);
  result<void> works() const;
  /// Changes what this process sees; it is kept by the next commit.
  result<void> note(wallet_change change);
  /// Until all that was noted is on the disk.
  result<void> commit(locked& lock);
  void lead(locked& lock);

  const std::string name_;
  const std::unique_ptr<wallet_disk> disk_;
  wallet_journal journal_;  // of the thread that leads
  mutable std::mutex mutex_;
  wallet_content has_;  // with all that was noted
  std::set<hash32> in_use_;
  // The next commit, by its number: changes, or all there is.
  uint64_t next_ = 1;
  std::vector<wallet_change> noted_;
  bool whole_ = false;
  // Those before it:
  uint64_t durable_ = 0;
  bool leading_ = false;
  std::optional<error> broken_;
  std::condition_variable committed_;
};

}  // namespace lethe
