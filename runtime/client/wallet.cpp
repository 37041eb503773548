#include "runtime/client/wallet.hpp"

#include <algorithm>
#include <thread>

#include "runtime/client/client_limits.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/log/draw.hpp"
#include "runtime/store/key_file.hpp"

namespace lethe {

namespace {

namespace fs = std::filesystem;

constexpr size_t wallet_key_bytes = 32;

result<secret_bytes> wallet_key(const fs::path& file) {
  auto path = file;
  path += ".key";
  std::error_code ignored;
  if (fs::exists(file, ignored) && !fs::exists(path, ignored))
    return fail("{}: the key of {} is not there; bring it back, or move the wallet away",
                path.string(), file.string());
  return keep_key(path, {wallet_key_bytes, wallet_key_bytes}, []() -> result<secret_bytes> {
    secret_bytes made(wallet_key_bytes);
    fill_random(made.bytes());
    return made;
  });
}

const hash32& nonce_of(const wallet_spend& s) { return s.token.nonce; }

result<token_offer> offer_of(const wallet_spend& s) {
  auto pending = s.change.pending();
  if (!pending) return pending.why();
  return token_offer{s.token, pending->request()};
}

}  // namespace

result<std::unique_ptr<wallet>> wallet::open(const fs::path& file) {
  auto disk = open_wallet_disk(file);
  if (!disk) return disk.why();
  auto key = wallet_key(file);
  if (!key) return key.why();
  return open(*std::move(disk), key->view(), file.string());
}

result<std::unique_ptr<wallet>> wallet::open(std::unique_ptr<wallet_disk> disk, bytes_view key,
                                             std::string name) {
  std::unique_ptr<wallet> made(new wallet(std::move(disk), key, std::move(name)));
  auto content = made->journal_.read();
  if (!content) return content.why();
  made->has_ = *std::move(content);
  made->durable_ = made->has_.generation;
  made->next_ = made->durable_ + 1;
  return made;
}

/// File and journal are read one after the other: who has them may replace both between.
result<std::unique_ptr<wallet>> wallet::view(const fs::path& file) {
  constexpr int tries_max = 10;
  auto key = wallet_key(file);
  if (!key) return key.why();
  for (int tries = 1;; ++tries) {
    auto seen = open(view_wallet_disk(file), key->view(), file.string());
    if (seen || tries == tries_max) return seen;
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * tries));
  }
}

/// All of it in the file, which may be copied then. If that fails, it is as if the process had been
/// killed.
wallet::~wallet() {
  locked lock(mutex_);
  if (noted_.empty() && !journal_.used()) return;
  whole_ = true;
  (void)bool(commit(lock));
}

error wallet::lost() const { return fail("{}: there is no such token in use", name_); }

result<void> wallet::works() const {
  if (!broken_) return {};
  return fail("{}; open the wallet again", broken_->text);
}

result<void> wallet::note(wallet_change change) {
  if (auto ok = works(); !ok) return ok;
  if (!apply_change(change, has_)) return lost();
  noted_.push_back(std::move(change));
  return {};
}

/// Whoever finds nobody leading writes for all that have noted something by then; who comes while
/// that runs waits for the next, which one of them leads.
result<void> wallet::commit(locked& lock) {
  const uint64_t mine = next_;
  while (durable_ < mine) {
    if (leading_)
      committed_.wait(lock);
    else if (auto ok = works(); !ok)
      return ok;
    else
      lead(lock);
  }
  return {};
}

void wallet::lead(locked& lock) {
  leading_ = true;
  result<void> how = fail("{}: no memory to write it", name_);
  const uint64_t number = next_++;
  const auto noted = std::exchange(noted_, {});
  try {
    const secret_bytes changes = to_bytes(noted);
    std::optional<wallet_content> all;
    if (std::exchange(whole_, false) || !journal_.fits(changes.size())) {
      all = has_;
      all->generation = number;
    }
    lock.unlock();
    how = all ? journal_.replace(*all) : journal_.append(number, changes.view());
  } catch (const std::bad_alloc&) {
  }
  if (!lock) lock.lock();
  leading_ = false;
  if (how)
    durable_ = number;
  else
    broken_ = how.why();
  committed_.notify_all();
}

wallet::numbers wallet::count() const {
  locked lock(mutex_);
  return {has_.tokens.size(), has_.spends.size()};
}

size_t wallet::count(const hash32& key_id) const {
  locked lock(mutex_);
  return size_t(std::ranges::count(has_.tokens, key_id, &private_token::key_id));
}

std::map<hash32, wallet::numbers> wallet::count_by_key() const {
  std::map<hash32, numbers> keys;
  locked lock(mutex_);
  for (const auto& t : has_.tokens) ++keys[t.key_id].tokens;
  for (const auto& s : has_.spends) ++keys[s.token.key_id].open;
  return keys;
}

result<void> wallet::add(std::span<const private_token> bought) {
  locked lock(mutex_);
  if (auto ok = works(); !ok) return ok;
  const size_t has = has_.tokens.size() + has_.spends.size();
  if (has + bought.size() > limits::wallet_tokens_max)
    return fail("{}: it has {} tokens; at most {}", name_, has, limits::wallet_tokens_max);
  has_.tokens.insert(has_.tokens.end(), bought.begin(), bought.end());
  whole_ = true;
  return commit(lock);
}

result<std::optional<token_offer>> wallet::take(const token_key& change_under,
                                                const hash32& challenge_digest,
                                                std::span<const hash32> not_of) {
  return show(change_under, challenge_digest, [not_of](const private_token& t) {
    return std::ranges::find(not_of, t.key_id) == not_of.end();
  });
}

result<std::optional<token_offer>> wallet::take_leftover(const token_key& change_under,
                                                         const hash32& challenge_digest) {
  return show(change_under, challenge_digest,
              [id = change_under.id()](const private_token& t) { return t.key_id != id; });
}

template <class Fits>
result<std::optional<token_offer>> wallet::show(const token_key& change_under, const hash32& digest,
                                                Fits fits) {
  using shown = std::optional<token_offer>;
  const auto change = change_choices::draw(change_under, digest);
  auto pending = change.pending();
  if (!pending) return pending.why();
  locked lock(mutex_);
  std::vector<const private_token*> fit;
  for (const auto& t : has_.tokens)
    if (t.challenge_digest == digest && fits(t)) fit.push_back(&t);
  if (fit.empty()) return shown();
  if (has_.spends.size() >= limits::wallet_spends_max)
    return fail("{}: {} tokens were shown and their fate is unknown; claim their change first",
                name_, has_.spends.size());
  const private_token token = *fit[uniform_below(fit.size(), fill_random)];
  if (auto ok = note(token_shown{token.nonce, change}); !ok) return ok.why();
  in_use_.insert(token.nonce);
  if (auto ok = commit(lock); !ok) return ok.why();
  return shown({token, pending->request()});
}

result<void> wallet::put_back(const hash32& nonce) {
  locked lock(mutex_);
  if (in_use_.erase(nonce) == 0) return lost();
  return note(token_back{nonce});
}

result<void> wallet::forget(const hash32& nonce) {
  locked lock(mutex_);
  in_use_.erase(nonce);
  return note(token_gone{nonce});
}

void wallet::leave_open(const hash32& nonce) {
  locked lock(mutex_);
  in_use_.erase(nonce);
}

result<wallet_spend> wallet::spend_of(const hash32& nonce) const {
  locked lock(mutex_);
  auto at = std::ranges::find(has_.spends, nonce, nonce_of);
  return at == has_.spends.end() ? lost() : result(*at);
}

result<void> wallet::take_change(const hash32& nonce, bytes_view response) {
  auto spend = spend_of(nonce);
  if (!spend) return spend.why();
  auto key = token_key::from_spki(spend->change.key);
  auto pending = spend->change.pending();
  if (!key || !pending) return lost();
  auto token = pending->finish(*key, response);
  if (!token) return fail("change: {}", token.why().text);
  locked lock(mutex_);
  if (auto ok = note(token_changed{nonce, *token}); !ok) return ok;
  return commit(lock);
}

std::vector<hash32> wallet::claimable() const {
  locked lock(mutex_);
  std::vector<hash32> open;
  for (const auto& s : has_.spends)
    if (!in_use_.contains(s.token.nonce)) open.push_back(s.token.nonce);
  return open;
}

result<token_offer> wallet::offer_again(const hash32& nonce) const {
  auto spend = spend_of(nonce);
  return spend ? offer_of(*spend) : spend.why();
}

result<size_t> wallet::retire(std::span<const hash32> live_keys) {
  locked lock(mutex_);
  if (auto ok = works(); !ok) return ok.why();
  auto dead = [&](const hash32& id) { return std::ranges::find(live_keys, id) == live_keys.end(); };
  auto dead_token = [&](const private_token& t) { return dead(t.key_id); };
  auto dead_spend = [&](const wallet_spend& s) {
    return !in_use_.contains(s.token.nonce) &&
           (dead(s.token.key_id) || dead(sha256({s.change.key})));
  };
  const size_t dropped =
      std::erase_if(has_.tokens, dead_token) + std::erase_if(has_.spends, dead_spend);
  if (dropped == 0) return dropped;
  whole_ = true;
  auto ok = commit(lock);
  return ok ? result(dropped) : ok.why();
}

}  // namespace lethe
