#include "runtime/client/wallet_content.hpp"

#include <set>

#include "runtime/client/client_limits.hpp"
#include "runtime/client/wallet_fields.hpp"
#include "runtime/crypto/aead.hpp"
#include "runtime/crypto/random.hpp"

namespace lethe {

namespace {

constexpr uint8_t version = 1;
constexpr std::string_view any_magic = "lethe wallet ";
constexpr std::string_view magic = "lethe wallet 2\n";
constexpr size_t spend_bytes = private_token::wire_bytes + sizeof(change_choices);
static_assert(sizeof(change_choices) == 342 + 32 + 32 + 48 + 256);

result<wallet_spend> read_spend(field_reader& in) {
  auto token = private_token::from_bytes(in.bytes(private_token::wire_bytes));
  if (!token) return token.why();
  auto change = read_choices(in);
  if (!change) return change.why();
  return wallet_spend{*token, *change};
}

result<void> read_into(field_reader& in, wallet_content& c) {
  const auto tokens = in.number<uint32_t>();
  if (tokens > limits::wallet_tokens_max) return fail("wallet: {} tokens", tokens);
  std::set<hash32> nonces;
  for (uint32_t i = 0; i < tokens; ++i) {
    auto token = private_token::from_bytes(in.bytes(private_token::wire_bytes));
    if (!token) return token.why();
    if (!nonces.insert(token->nonce).second) return fail("wallet: a token is there twice");
    c.tokens.push_back(*token);
  }
  const auto spends = in.number<uint32_t>();
  if (spends > limits::wallet_spends_max) return fail("wallet: {} spends", spends);
  for (uint32_t i = 0; i < spends; ++i) {
    auto spend = read_spend(in);
    if (!spend) return spend.why();
    if (!nonces.insert(spend->token.nonce).second) return fail("wallet: a token is there twice");
    c.spends.push_back(*std::move(spend));
  }
  return {};
}

}  // namespace

change_choices change_choices::draw(const token_key& key, const hash32& challenge_digest) {
  change_choices c;
  c.key = key.spki();
  c.challenge_digest = challenge_digest;
  fill_random(c.nonce);
  fill_random(c.salt);
  openssl::number_to(key.rsa().random().get(), c.factor);
  return c;
}

result<pending_token> change_choices::pending() const {
  auto signs = token_key::from_spki(key);
  if (!signs) return signs.why();
  return pending_token::make(*signs, challenge_digest, nonce, {.salt = salt, .factor = factor});
}

secret_bytes wallet_content::to_bytes() const {
  secret_bytes out(1 + 8 + 4 + tokens.size() * private_token::wire_bytes + 4 +
                   spends.size() * spend_bytes);
  byte_writer to{out.bytes()};
  to.number(version);
  to.number(generation);
  to.number(uint32_t(tokens.size()));
  for (const auto& t : tokens) to.put(t.to_bytes());
  to.number(uint32_t(spends.size()));
  for (const auto& s : spends) {
    to.put(s.token.to_bytes());
    put_choices(to, s.change);
  }
  check(to.left.empty());
  return out;
}

result<wallet_content> wallet_content::from_bytes(bytes_view bytes) {
  field_reader in(bytes);
  if (in.number<uint8_t>() != version) return fail("wallet: not of this release");
  wallet_content c{.generation = in.number<uint64_t>()};
  if (auto ok = read_into(in, c); !ok) return ok.why();
  if (!in.done()) return fail("wallet: damaged");
  return c;
}

std::vector<std::byte> wallet_content::seal(bytes_view key) const {
  const secret_bytes plain = to_bytes();
  aead_nonce nonce;
  fill_random(nonce);
  std::vector<std::byte> out(magic.size() + nonce.size() + plain.size() + aead_tag_bytes);
  std::ranges::copy(as_bytes(magic), out.begin());
  std::ranges::copy(nonce, out.begin() + magic.size());
  aead::sealing(aead_id::aes_256_gcm, key)
      .seal(nonce, as_bytes(magic), {plain.view()}, out.data() + magic.size() + nonce.size());
  return out;
}

result<wallet_content> wallet_content::open(bytes_view sealed, bytes_view key) {
  field_reader in(sealed);
  const bool ours = as_text(in.bytes(magic.size())) == magic;
  bytes_view nonce_bytes = in.bytes(aead_nonce_bytes);
  if (!ours && as_text(sealed).starts_with(any_magic))
    return fail("a wallet of another release: spend it with that one, or move it away");
  if (!ours || !in.good() || in.rest().size() < aead_tag_bytes) return fail("not a wallet");
  aead_nonce nonce;
  copy_into(nonce, nonce_bytes);
  secret_bytes plain(in.rest().size() - aead_tag_bytes);
  auto cipher = aead::opening(aead_id::aes_256_gcm, key);
  if (!cipher.open(nonce, as_bytes(magic), in.rest(), plain.bytes().data()))
    return fail("it does not open: it is damaged, or its key is another one's");
  return from_bytes(plain.view());
}

}  // namespace lethe
