#include "runtime/store/account_store.hpp"

#include <openssl/crypto.h>

#include <algorithm>

#include "runtime/crypto/key_bytes.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/store/store_limits.hpp"

namespace lethe {
namespace {

using std::chrono::sys_days;

constexpr store_kind accounts_kind{
    .name = "a store of accounts",
    .application_id = 0x6c656163,  // "leac"
    .schema =
        "CREATE TABLE accounts(name TEXT PRIMARY KEY, label BLOB NOT NULL UNIQUE,"
        " salt BLOB NOT NULL, hash BLOB NOT NULL, quota INTEGER NOT NULL,"
        " revoked INTEGER NOT NULL, created_day INTEGER NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE bought(epoch INTEGER, name TEXT, used INTEGER NOT NULL,"
        " PRIMARY KEY(epoch, name)) WITHOUT ROWID",
    .shared = true};

/// A secret is a label of 8 bytes, by which its account is found, and 32 that nobody else knows.
constexpr std::string_view secret_prefix = "lethe-";
constexpr size_t label_bytes = 8, secret_size = label_bytes + 32;

secret_bytes secret_text(bytes_view secret) {
  constexpr std::string_view digits = "0123456789abcdef";
  secret_bytes text(secret_prefix.size() + 2 * secret.size());
  auto to = std::ranges::copy(as_bytes(secret_prefix), text.bytes().begin()).out;
  for (std::byte b : secret) {
    *to++ = std::byte(digits[uint8_t(b) >> 4]);
    *to++ = std::byte(digits[uint8_t(b) & 15]);
  }
  return text;
}

std::optional<uint8_t> digit_value(char c) {
  if (c >= '0' && c <= '9') return uint8_t(c - '0');
  if (c >= 'a' && c <= 'f') return uint8_t(c - 'a' + 10);
  return {};
}

std::optional<key_bytes> read_secret(std::string_view text) {
  if (!text.starts_with(secret_prefix)) return {};
  text.remove_prefix(secret_prefix.size());
  if (text.size() != 2 * secret_size) return {};
  key_bytes secret(secret_size);
  for (size_t i = 0; i < secret_size; ++i) {
    auto high = digit_value(text[2 * i]), low = digit_value(text[2 * i + 1]);
    if (!high || !low) return {};
    secret.bytes()[i] = std::byte(uint8_t(*high << 4 | *low));
  }
  return secret;
}

/// All of the secret is random, so that one round of hashing hides it.
hash32 salted(bytes_view salt, bytes_view secret) {
  return sha256({as_bytes("lethe account"), salt, secret});
}

account account_of(const sqlite_rows& row) {
  return {std::string(row.text(0)), uint32_t(row.number(1)), row.number(2) != 0,
          sys_days(std::chrono::days(row.number(3)))};
}

}  // namespace

bool is_account_name(std::string_view name) {
  return !name.empty() && name.size() <= limits::account_name_max &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == name.npos;
}

result<std::unique_ptr<account_store>> account_store::open(const store_place& place) {
  auto file = sqlite_file::open(place, accounts_kind);
  if (!file) return file.why();
  return std::unique_ptr<account_store>(new account_store(*std::move(file)));
}

result<secret_bytes> account_store::add(std::string_view name, uint32_t quota, sys_days today) {
  if (!is_account_name(name))
    return fail("a name of an account has 1 to {} letters of a-z 0-9 . _ -",
                limits::account_name_max);
  key_bytes secret(secret_size);
  fill_random(secret.bytes());
  std::lock_guard lock(mutex_);
  if (auto ok = insert(name, quota, today, secret.view()); !ok) return ok.why();
  return secret_text(secret.view());
}

result<void> account_store::insert(std::string_view name, uint32_t quota, sys_days today,
                                   bytes_view secret) {
  std::array<std::byte, 16> salt;
  fill_random(salt);
  const hash32 hash = salted(salt, secret);
  auto added = file_.change(
      "INSERT OR IGNORE INTO accounts(name, label, salt, hash, quota, revoked, created_day)"
      " VALUES(?1, ?2, ?3, ?4, ?5, 0, ?6)",
      name, secret.first(label_bytes), bytes_view(salt), bytes_view(hash), int64_t{quota},
      int64_t{today.time_since_epoch().count()});
  if (!added) return added.why();
  if (*added != 1) return fail("an account {} exists, or existed; choose another name", name);
  return {};
}

result<std::vector<account>> account_store::list() {
  std::lock_guard lock(mutex_);
  auto row = file_.ask("SELECT name, quota, revoked, created_day FROM accounts ORDER BY name");
  if (!row) return row.why();
  std::vector<account> all;
  while (row->has_row()) {
    all.push_back(account_of(*row));
    if (auto ok = file_.next(*row); !ok) return ok.why();
  }
  return all;
}

result<uint64_t> account_store::count() {
  std::lock_guard lock(mutex_);
  auto row = file_.ask("SELECT count(*) FROM accounts WHERE revoked=0");
  if (!row) return row.why();
  return uint64_t(row->number(0));
}

result<void> account_store::change_one(const result<uint64_t>& changed,
                                       std::string_view name) const {
  if (!changed) return changed.why();
  if (*changed == 1) return {};
  if (!is_account_name(name)) return fail("that is no name of an account");
  return fail("there is no account {}", name);
}

result<void> account_store::set_quota(std::string_view name, uint32_t quota) {
  std::lock_guard lock(mutex_);
  auto changed = file_.change("UPDATE accounts SET quota=?2 WHERE name=?1 AND revoked=0", name,
                              int64_t{quota});
  if (!changed || *changed == 1) return change_one(changed, name);
  auto row = file_.ask("SELECT revoked FROM accounts WHERE name=?1", name);
  if (!row) return row.why();
  if (!row->has_row()) return change_one(changed, name);
  return fail("{} is revoked: it buys nothing any more, whatever its quota", name);
}

result<void> account_store::revoke(std::string_view name) {
  std::lock_guard lock(mutex_);
  return change_one(file_.change("UPDATE accounts SET revoked=1 WHERE name=?1", name), name);
}

result<std::optional<account>> account_store::authenticate(std::string_view text) {
  const auto secret = read_secret(text);
  if (!secret) return std::optional<account>{};
  std::lock_guard lock(mutex_);
  auto row =
      file_.ask("SELECT name, quota, revoked, created_day, salt, hash FROM accounts WHERE label=?1",
                secret->view().first(label_bytes));
  if (!row) return row.why();
  if (!row->has_row()) return std::optional<account>{};
  const hash32 hash = salted(row->blob(4), secret->view());
  const bytes_view kept = row->blob(5);
  if (kept.size() != hash.size() || CRYPTO_memcmp(kept.data(), hash.data(), hash.size()) != 0)
    return std::optional<account>{};
  return std::optional(account_of(*row));
}

result<charge_answer> account_store::charge(std::string_view name, uint32_t tokens,
                                            uint32_t epoch) {
  std::lock_guard lock(mutex_);
  auto answer = charge_answer::no_account;
  auto done = file_.transaction([this, name, tokens, epoch, &answer]() -> result<void> {
    auto charged = charge_now(name, tokens, epoch);
    if (!charged) return charged.why();
    answer = *charged;
    return {};
  });
  if (!done) return done.why();
  return answer;
}

result<charge_answer> account_store::charge_now(std::string_view name, uint32_t tokens,
                                                uint32_t epoch) {
  auto row = file_.ask(
      "SELECT quota, (SELECT used FROM bought WHERE epoch=?2 AND name=?1)"
      " FROM accounts WHERE name=?1 AND revoked=0",
      name, int64_t{epoch});
  if (!row) return row.why();
  if (!row->has_row()) return charge_answer::no_account;
  const int64_t used = row->number(1) + tokens;
  if (used > row->number(0)) return charge_answer::over_quota;
  auto done = file_.change("INSERT OR REPLACE INTO bought(epoch, name, used) VALUES(?1, ?2, ?3)",
                           int64_t{epoch}, name, used);
  if (!done) return done.why();
  return charge_answer::charged;
}

result<uint64_t> account_store::used(std::string_view name, uint32_t epoch) {
  std::lock_guard lock(mutex_);
  auto row = file_.ask("SELECT used FROM bought WHERE epoch=?1 AND name=?2", int64_t{epoch}, name);
  if (!row) return row.why();
  return row->has_row() ? uint64_t(row->number(0)) : 0;
}

result<uint64_t> account_store::buyers(uint32_t epoch) {
  std::lock_guard lock(mutex_);
  auto row = file_.ask("SELECT count(*) FROM bought WHERE epoch=?1 AND used>0", int64_t{epoch});
  if (!row) return row.why();
  return uint64_t(row->number(0));
}

result<void> account_store::forget_before(uint32_t epoch) {
  std::lock_guard lock(mutex_);
  auto done = file_.change("DELETE FROM bought WHERE epoch<?1", int64_t{epoch});
  if (!done) return done.why();
  return {};
}

}  // namespace lethe
