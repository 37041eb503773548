#include "runtime/serve/node_door.hpp"

#include <algorithm>

#include "runtime/crypto/sealed_message.hpp"

namespace lethe {

result<node_public> node_door::begin(uint32_t roster, std::vector<token_key> issuers,
                                     uint64_t now_ms, uint64_t grace_ms) {
  auto made = node_key::make();
  if (!made) return made.why();
  node_public published = made->published();
  auto service = std::make_shared<sealed_service>(
      sealed_service{api_, *std::move(made), roster, release_,
                     std::make_shared<seal_memory>(remembered_), shape_});
  auto key = std::make_shared<door_key>(door_key{std::move(service), std::move(issuers)});
  std::lock_guard guard(lock_);
  // A roster that is asked for twice was never published the first time.
  std::erase_if(keys_, [&](const auto& k) { return k->service->epoch == roster; });
  for (auto& old : keys_) old->until_ms = std::min(old->until_ms, now_ms + grace_ms);
  keys_.insert(keys_.begin(), std::move(key));
  if (keys_.size() > keys_max) keys_.resize(keys_max);
  return published;
}

void node_door::expire(uint64_t now_ms) {
  std::lock_guard guard(lock_);
  std::erase_if(keys_, [now_ms](const auto& k) { return k->until_ms <= now_ms; });
}

std::optional<signed_refusal> node_door::refuse(bytes_view sealed, bytes_view token,
                                                refusal_reason why) const {
  auto key = find(sealed);
  if (!key) return {};
  auto binding = sealed_message::parse(sealed)->binding(sha256({token}));
  return sign_refusal(key->service->key, {binding, key->service->epoch, why});
}

size_t node_door::keys() const {
  std::lock_guard guard(lock_);
  return keys_.size();
}

std::shared_ptr<const door_key> node_door::find(bytes_view sealed) const {
  auto message = sealed_message::parse(sealed);
  if (!message) return {};
  std::lock_guard guard(lock_);
  for (const auto& key : keys_) {
    const auto& service = *key->service;
    bool ours = std::ranges::any_of(message->entries, [&](const seal_entry& e) {
      return e.node_id == service.key.published().id;
    });
    if (ours && service.epoch == message->epoch) return key;
  }
  return {};
}

result<std::unique_ptr<sealed_call>> node_door::open(const door_key& key, bytes_view sealed,
                                                     bytes_view token,
                                                     std::shared_ptr<request_watcher> watcher,
                                                     sealed_call::fault& whose) {
  whose = sealed_call::fault::client;
  auto paid = private_token::from_bytes(token);
  if (!paid) return paid.why();
  auto issuer = std::ranges::find(key.issuers, paid->key_id, &token_key::id);
  whose = sealed_call::fault::node;  // the gateway has taken it: we should know the key
  if (issuer == key.issuers.end())
    return fail("token: it is of no key that this roster knows; buy one under the current key");
  whose = sealed_call::fault::client;
  // Which challenge a token was bought for is the gateway's to check.
  if (auto ok = verify_token(*paid, *issuer, paid->challenge_digest); !ok) return ok.why();
  return sealed_call::open(key.service, sealed,
                           {.hash = paid->hash(), .spends = sha256({paid->key_id, paid->nonce})},
                           std::move(watcher), whose);
}

}  // namespace lethe
