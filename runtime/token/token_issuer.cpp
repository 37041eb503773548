#include "runtime/token/token_issuer.hpp"

#include <algorithm>

#include "runtime/token/token_limits.hpp"

namespace lethe {

namespace {

constexpr uint32_t ok_status = 200, partial_status = 206, unprocessable = 422, internal = 500;

issuer_answer refusal(error why, uint32_t status = unprocessable) {
  return {.status = status, .why = std::move(why.text)};
}

issuer_answer signed_with(const issuer_key& key, const token_request& request) {
  if (!key.published().rsa().holds(request.blinded))
    return refusal(fail("token request: its number is not below the key's modulus"));
  auto made = key.sign(request.blinded);
  if (!made) return refusal(made.why(), internal);
  return {.body = {made->begin(), made->end()}};
}

error unknown_key() {
  return fail("token request: it names no key that signs now; fetch the directory again");
}

}  // namespace

result<void> token_issuer::add(issuer_key key, uint64_t not_before_s) {
  if (keys_.size() == limits::issuer_keys_max)
    return fail("issuer: it has {} keys already; retire the oldest", keys_.size());
  for (const auto& k : keys_) {
    if (k.key.published().short_id() == key.published().short_id())
      return fail("issuer: another key's id ends in the same byte; make another key");
    if (k.not_before_s == not_before_s)
      return fail("issuer: another key begins at {}; give this one a later time", not_before_s);
  }
  auto at =
      std::ranges::find_if(keys_, [=](const kept_key& k) { return k.not_before_s < not_before_s; });
  keys_.insert(at, {std::move(key), not_before_s});
  return {};
}

void token_issuer::retire(uint64_t now_s) {
  const size_t keep = current_at(now_s) + 2;
  if (keys_.size() > keep) keys_.erase(keys_.begin() + ptrdiff_t(keep), keys_.end());
}

size_t token_issuer::current_at(uint64_t now_s) const {
  auto at = std::ranges::find_if(keys_, [=](const kept_key& k) { return k.not_before_s <= now_s; });
  return size_t(at - keys_.begin());
}

std::span<const token_issuer::kept_key> token_issuer::live(uint64_t now_s) const {
  auto from = std::span(keys_).subspan(current_at(now_s));
  return from.first(std::min<size_t>(2, from.size()));
}

const issuer_key* token_issuer::named(uint8_t short_id, std::span<const kept_key> among) const {
  auto found = std::ranges::find_if(
      among, [=](const kept_key& k) { return k.key.published().short_id() == short_id; });
  return found == among.end() ? nullptr : &found->key;
}

const token_key* token_issuer::current(uint64_t now_s) const {
  auto keys = live(now_s);
  return keys.empty() ? nullptr : &keys[0].key.published();
}

const token_key* token_issuer::redeemable(const hash32& key_id, uint64_t now_s) const {
  for (const auto& k : live(now_s))
    if (k.key.published().id() == key_id) return &k.key.published();
  return nullptr;
}

token_directory token_issuer::directory(std::string issuer_request_uri, uint64_t now_s) const {
  token_directory out{.issuer_request_uri = std::move(issuer_request_uri)};
  const size_t count = std::min(keys_.size(), current_at(now_s) + 2);
  for (const auto& k : std::span(keys_).first(count))
    out.keys.push_back({k.key.published().spki(), k.not_before_s});
  return out;
}

issuer_answer token_issuer::answer(bytes_view request, uint64_t now_s) const {
  auto read = token_request::from_bytes(request);
  if (!read) return refusal(read.why());
  auto keys = live(now_s);
  const auto* key = named(read->short_key_id, keys.first(std::min<size_t>(1, keys.size())));
  return key ? signed_with(*key, *read) : refusal(unknown_key());
}

issuer_answer token_issuer::answer_batch(bytes_view request, uint64_t now_s) const {
  auto read = read_batch_request(request);
  if (!read) return refusal(read.why());
  auto keys = live(now_s);
  keys = keys.first(std::min<size_t>(1, keys.size()));
  batch_answer made;
  issuer_answer last = refusal(unknown_key());  // of those that were refused
  size_t good = 0;
  for (const auto& one : *read) {
    const auto* key = named(one.short_key_id, keys);
    auto answer = key ? signed_with(*key, one) : refusal(unknown_key());
    if (answer.status == internal) return answer;
    auto& entry = made.emplace_back();
    if (answer.status == ok_status) {
      ++good;
      std::ranges::copy(answer.body, entry.emplace().begin());
    } else {
      last = std::move(answer);
    }
  }
  if (good == 0) return last;
  if (good == made.size()) return {.body = write_batch_response(made)};
  return {.status = partial_status, .body = write_batch_response(made), .why = std::move(last.why)};
}

result<change_claim> token_issuer::claim_change(bytes_view spent, bytes_view request,
                                                const hash32& challenge_digest,
                                                uint64_t now_s) const {
  auto token = private_token::from_bytes(spent);
  if (!token) return token.why();
  auto asked = token_request::from_bytes(request);
  if (!asked) return asked.why();
  const token_key* key = redeemable(token->key_id, now_s);
  if (!key) return fail("change: the token's key does not redeem any more");
  if (auto good = verify_token(*token, *key, challenge_digest); !good) return good.why();
  const auto* signs = named(asked->short_key_id, live(now_s));
  if (!signs) return unknown_key();
  if (!signs->published().rsa().holds(asked->blinded))
    return fail("token request: its number is not below the key's modulus");
  return change_claim{.key_id = token->key_id,
                      .nonce = token->nonce,
                      .request_digest = asked->digest(),
                      .request = *asked};
}

issuer_answer token_issuer::sign(const change_claim& claim, uint64_t now_s) const {
  const auto* key = named(claim.request.short_key_id, live(now_s));
  return key ? signed_with(*key, claim.request) : refusal(unknown_key());
}

}  // namespace lethe
