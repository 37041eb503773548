#include "runtime/crypto/ohttp_keys.hpp"

namespace lethe {

namespace {

constexpr size_t published_keys = 2;
constexpr uint64_t for_ever = UINT64_MAX;

}  // namespace

result<ohttp_keys> ohttp_keys::make(const settings& with) {
  auto current = hpke_key::make(with.suite.kem), next = hpke_key::make(with.suite.kem);
  if (!current) return current.why();
  if (!next) return next.why();
  return make(with, *std::move(current), *std::move(next));
}

result<ohttp_keys> ohttp_keys::make(const settings& with, hpke_key current, hpke_key next) {
  if (auto known = expect_known(with.suite); !known) return known.why();
  ohttp_keys made(with);
  if (auto added = made.add(std::move(current)); !added) return added.why();
  if (auto added = made.add(std::move(next)); !added) return added.why();
  return made;
}

result<void> ohttp_keys::rotate(uint64_t now) {
  auto next = hpke_key::make(with_.suite.kem);
  if (!next) return next.why();
  return rotate(now, *std::move(next));
}

result<void> ohttp_keys::rotate(uint64_t now, hpke_key next) {
  forget(now);
  if (auto added = add(std::move(next)); !added) return added;
  const uint64_t most = for_ever - 1;
  keys_[keys_.size() - published_keys - 1].until =
      now > most - std::min(with_.grace, most) ? most : now + with_.grace;
  forget(now);  // where there is no grace
  return {};
}

void ohttp_keys::forget(uint64_t now) {
  std::erase_if(keys_, [now](const accepted& k) { return k.until != for_ever && k.until <= now; });
}

result<void> ohttp_keys::add(hpke_key key) {
  if (key.kem() != with_.suite.kem)
    return fail("ohttp keys: a key of KEM {:#06x} among those of {:#06x}", key.kem(),
                with_.suite.kem);
  for (const accepted& k : keys_)
    if (std::ranges::equal(k.key.public_key(), key.public_key()))
      return fail("ohttp keys: the new key is the one with id {}; make another", k.id);
  auto id = free_id();
  if (!id) return id.why();
  keys_.push_back({.id = *id,
                   .key = std::move(key),
                   .seen = std::make_shared<seen_seals>(with_.seals_max),
                   .until = for_ever});
  return {};
}

result<uint8_t> ohttp_keys::free_id() const {
  if (keys_.empty()) return with_.first_id;
  uint8_t id = keys_.back().id;
  for (size_t tries = 0; tries < 256; ++tries) {
    ++id;
    if (std::ranges::none_of(keys_, [id](const accepted& k) { return k.id == id; })) return id;
  }
  return fail("ohttp keys: every id is of a key that is accepted; rotate less often");
}

const ohttp_keys::accepted* ohttp_keys::find(const ohttp_head& head, uint64_t now) const noexcept {
  if (head.suite != with_.suite) return nullptr;
  for (const accepted& k : keys_)
    if (k.id == head.key_id) return k.until == for_ever || now < k.until ? &k : nullptr;
  return nullptr;
}

std::vector<std::byte> ohttp_keys::published() const {
  std::vector<ohttp_config> configs;
  for (const accepted& k : std::span(keys_).last(published_keys))
    configs.push_back({.key_id = k.id,
                       .kem = with_.suite.kem,
                       .pk = {k.key.public_key().begin(), k.key.public_key().end()},
                       .algorithms = {{with_.suite.kdf, with_.suite.aead}}});
  return write_ohttp_keys(configs);
}

}  // namespace lethe
