#include "runtime/client/wallet.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/durable_file.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/client/client_limits.hpp"
#include "runtime/crypto/big_endian.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/log/draw.hpp"
#include "runtime/store/key_file.hpp"

namespace lethe {

namespace {

namespace fs = std::filesystem;

constexpr size_t wallet_key_bytes = 32;

fs::path with_ending(fs::path path, const char* ending) { return path += ending; }

result<secret_bytes> wallet_key(const fs::path& file) {
  const auto path = with_ending(file, ".key");
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

auto of_nonce(const hash32& nonce) {
  return [&nonce](const wallet_spend& s) { return s.token.nonce == nonce; };
}

result<token_offer> offer_of(const wallet_spend& s) {
  auto pending = s.change.pending();
  if (!pending) return pending.why();
  return token_offer{s.token, pending->request()};
}

}  // namespace

result<std::unique_ptr<wallet>> wallet::open(const fs::path& file) {
  auto lock = locked_file::open(with_ending(file, ".lock"));
  if (!lock) return lock.why();
  auto key = wallet_key(file);
  if (!key) return key.why();
  std::unique_ptr<wallet> made(new wallet(file, *std::move(lock), key->view()));
  if (auto ok = made->read(); !ok) return ok.why();
  return made;
}

result<void> wallet::read() {
  std::error_code ignored;
  const bool there = fs::exists(file_, ignored);
  auto least = least_generation();
  if (!least) return least.why();
  if (!there && *least > 0)
    return fail("{}: it is gone; bring it back, or remove {}.lock to begin with an empty one",
                file_.string(), file_.string());
  if (!there) return write(wallet_content{});
  auto mapped = mapped_file::open(file_);
  if (!mapped) return mapped.why();
  auto content = wallet_content::open(mapped->bytes(), key_.view());
  if (!content) return fail("{}: {}", file_.string(), content.why().text);
  if (content->generation < *least)
    return fail(
        "{}: an older copy of this wallet (change {}, and {} were made); its tokens may have been "
        "shown since, and whoever shows one again is known. Remove it, and buy new ones",
        file_.string(), content->generation, *least);
  has_ = *std::move(content);
  return {};
}

/// What the lock file says; nothing in it: 0.
result<uint64_t> wallet::least_generation() const {
  std::byte field[8];
  const ssize_t got = ::pread(lock_.fd(), field, sizeof field, 0);
  if (got == 0) return uint64_t{0};
  if (got != sizeof field) return fail("{}.lock: cannot be read, or is damaged", file_.string());
  return load_be<uint64_t>(field);
}

result<void> wallet::write(const wallet_content& next) {
  if (broken_) return fail("{}: a write failed; open the wallet again", file_.string());
  broken_ = true;  // until all of it is on the disk
  auto content = next;
  ++content.generation;
  if (auto ok = write_durable(file_, content.seal(key_.view()), 0600); !ok) return ok;
  std::byte field[8];
  store_be(content.generation, field);
  if (::pwrite(lock_.fd(), field, sizeof field, 0) != sizeof field || ::fdatasync(lock_.fd()) != 0)
    return fail("{}.lock: cannot write: {}", file_.string(), std::strerror(errno));
  has_ = std::move(content);
  broken_ = false;
  return {};
}

template <class Change>
result<void> wallet::change(Change how) {
  auto next = has_;
  if (auto ok = how(next); !ok) return ok;
  return write(next);
}

error wallet::lost() const { return fail("{}: there is no such token in use", file_.string()); }

wallet::numbers wallet::count() const {
  std::lock_guard lock(mutex_);
  return {has_.tokens.size(), has_.spends.size()};
}

size_t wallet::count(const hash32& key_id) const {
  std::lock_guard lock(mutex_);
  return size_t(std::ranges::count(has_.tokens, key_id, &private_token::key_id));
}

result<void> wallet::add(std::span<const private_token> bought) {
  std::lock_guard lock(mutex_);
  if (bought.size() > limits::wallet_tokens_max - has_.tokens.size())
    return fail("{}: it has {} tokens; at most {}", file_.string(), has_.tokens.size(),
                limits::wallet_tokens_max);
  return change([&](wallet_content& c) -> result<void> {
    c.tokens.insert(c.tokens.end(), bought.begin(), bought.end());
    return {};
  });
}

result<std::optional<token_offer>> wallet::take(const token_key& change_under,
                                                const hash32& challenge_digest) {
  using taken = std::optional<token_offer>;
  std::lock_guard lock(mutex_);
  std::vector<size_t> fit;
  for (size_t i = 0; i < has_.tokens.size(); ++i)
    if (has_.tokens[i].challenge_digest == challenge_digest) fit.push_back(i);
  if (fit.empty()) return taken();
  if (has_.spends.size() >= limits::wallet_spends_max)
    return fail("{}: {} tokens were shown and their fate is unknown; claim their change first",
                file_.string(), has_.spends.size());
  const size_t at = fit[uniform_below(fit.size(), fill_random)];
  const wallet_spend spend{has_.tokens[at], change_choices::draw(change_under, challenge_digest)};
  auto offer = offer_of(spend);
  if (!offer) return offer.why();
  auto ok = change([&](wallet_content& c) -> result<void> {
    c.tokens.erase(c.tokens.begin() + ptrdiff_t(at));
    c.spends.push_back(spend);
    return {};
  });
  if (!ok) return ok.why();
  in_use_.insert(spend.token.nonce);
  return taken(*std::move(offer));
}

result<void> wallet::put_back(const hash32& nonce) {
  std::lock_guard lock(mutex_);
  if (!in_use_.contains(nonce)) return lost();
  auto ok = change([&](wallet_content& c) -> result<void> {
    auto at = std::ranges::find_if(c.spends, of_nonce(nonce));
    if (at == c.spends.end()) return lost();
    c.tokens.push_back(at->token);
    c.spends.erase(at);
    return {};
  });
  in_use_.erase(nonce);
  return ok;
}

result<void> wallet::forget(const hash32& nonce) {
  std::lock_guard lock(mutex_);
  in_use_.erase(nonce);
  return change([&](wallet_content& c) -> result<void> {
    if (std::erase_if(c.spends, of_nonce(nonce)) == 0) return lost();
    return {};
  });
}

void wallet::leave_open(const hash32& nonce) {
  std::lock_guard lock(mutex_);
  in_use_.erase(nonce);
}

result<void> wallet::take_change(const hash32& nonce, bytes_view response) {
  std::lock_guard lock(mutex_);
  return change([&](wallet_content& c) -> result<void> {
    auto at = std::ranges::find_if(c.spends, of_nonce(nonce));
    if (at == c.spends.end()) return lost();
    auto key = token_key::from_spki(at->change.key);
    auto pending = at->change.pending();
    if (!key || !pending) return lost();
    auto token = pending->finish(*key, response);
    if (!token) return fail("change: {}", token.why().text);
    c.tokens.push_back(*token);
    c.spends.erase(at);
    return {};
  });
}

std::vector<hash32> wallet::claimable() const {
  std::lock_guard lock(mutex_);
  std::vector<hash32> open;
  for (const auto& s : has_.spends)
    if (!in_use_.contains(s.token.nonce)) open.push_back(s.token.nonce);
  return open;
}

result<token_offer> wallet::offer_again(const hash32& nonce) const {
  std::lock_guard lock(mutex_);
  auto at = std::ranges::find_if(has_.spends, of_nonce(nonce));
  return at == has_.spends.end() ? lost() : offer_of(*at);
}

result<size_t> wallet::retire(std::span<const hash32> live_keys) {
  std::lock_guard lock(mutex_);
  auto dead = [&](const hash32& id) { return std::ranges::find(live_keys, id) == live_keys.end(); };
  auto dead_token = [&](const private_token& t) { return dead(t.key_id); };
  auto dead_spend = [&](const wallet_spend& s) {
    return !in_use_.contains(s.token.nonce) &&
           (dead(s.token.key_id) || dead(sha256({s.change.key})));
  };
  auto next = has_;
  const size_t dropped =
      std::erase_if(next.tokens, dead_token) + std::erase_if(next.spends, dead_spend);
  if (dropped == 0) return dropped;
  auto ok = write(next);
  return ok ? result(dropped) : ok.why();
}

}  // namespace lethe
