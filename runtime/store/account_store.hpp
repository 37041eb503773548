#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/secret_bytes.hpp"
#include "runtime/store/spend_ledger.hpp"

namespace lethe {

/// 1 to limits::account_name_max of a-z 0-9 . _ -
bool is_account_name(std::string_view name);

struct account {
  std::string name;
  uint32_t quota = 0;  // tokens a token epoch
  bool revoked = false;
  std::chrono::sys_days created{};
};

enum class charge_answer : uint8_t { charged, over_quota, no_account };  // revoked is no account

/// Who may buy tokens, and how many. Of a purchase nothing is kept but its account's sum in a token
/// epoch. Any thread may ask; what changes something waits for the disk and is whole or not at all.
class account_store {
 public:
  static result<std::unique_ptr<account_store>> open(const store_place& place);

  /// Returns the account's secret, `lethe-` and 80 hex digits: it is shown once, and only a salted
  /// hash of it stays.
  result<secret_bytes> add(std::string_view name, uint32_t quota, std::chrono::sys_days today);
  /// By name.
  result<std::vector<account>> list();
  result<void> set_quota(std::string_view name, uint32_t quota);
  /// For good: the name is not given again.
  result<void> revoke(std::string_view name);

  /// The account, revoked ones too, that has this secret; none: a wrong secret.
  result<std::optional<account>> authenticate(std::string_view secret);
  /// Takes `tokens` from what is left of the account's quota in this epoch: all of them or none.
  result<charge_answer> charge(std::string_view name, uint32_t tokens, uint32_t epoch);
  result<uint64_t> used(std::string_view name, uint32_t epoch);
  /// How many accounts bought in an epoch.
  result<uint64_t> buyers(uint32_t epoch);
  /// Removes what was bought in earlier epochs.
  result<void> forget_before(uint32_t epoch);

 private:
  explicit account_store(sqlite_file file) : file_(std::move(file)) {}
  result<void> insert(std::string_view name, uint32_t quota, std::chrono::sys_days today,
                      bytes_view secret);
  result<charge_answer> charge_now(std::string_view name, uint32_t tokens, uint32_t epoch);
  result<void> change_one(const result<uint64_t>& changed, std::string_view name) const;
  std::mutex mutex_;
  sqlite_file file_;
};

}  // namespace lethe
