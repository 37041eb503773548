// Whose token was spent? A matcher that has all that issuer and gateway store and could have seen
// must guess, and must not guess where they do their work well.

#include <unordered_map>

#include "tests/unit/issuer_house.hpp"

namespace lethe {
namespace {

using namespace test;

constexpr uint32_t accounts = 8, tokens_each = 64, tokens_all = accounts * tokens_each;

/// What passed the issuer for one token, in the order in which it came.
struct sale {
  uint32_t account = 0;
  uint32_t epoch = 0;
  hash32 key_id{};
  token_request request;
  token_signature signature{};
};

struct spent_token {
  private_token token;
  uint32_t account = 0;  // the truth, which no matcher reads
};

struct story {
  std::vector<sale> sales;
  std::vector<spent_token> spends;  // in the order in which the gateway saw them
  rsa_public rsa;
};

/// Whom a matcher takes for the buyer of each spent token.
using guesses = std::vector<uint32_t>;

size_t right(const story& s, const guesses& g) {
  size_t n = 0;
  for (size_t i = 0; i < g.size(); ++i) n += g[i] == s.spends[i].account;
  return n;
}

guesses by_order(const story& s) {
  guesses g;
  for (size_t i = 0; i < s.spends.size(); ++i) g.push_back(s.sales[i % s.sales.size()].account);
  return g;
}

guesses by_key(const story& s) {
  guesses g;
  for (const auto& spend : s.spends) {
    auto found = std::ranges::find(s.sales, spend.token.key_id, &sale::key_id);
    g.push_back(found == s.sales.end() ? 0 : found->account);
  }
  return g;
}

/// A key's number below n: what was signed of a token, s^e.
openssl::number raw_of(const story& s, bytes_view bytes, BN_CTX* context) {
  return s.rsa.power(openssl::number_from(bytes).get(), context);
}

/// A blinded number over a token's is the factor that blinded it, if they belong together. One that
/// comes up with several tokens was used several times.
guesses by_factor(const story& s) {
  openssl::number_context context = openssl::new_number_context();
  std::vector<openssl::number> inverses;
  for (const auto& spend : s.spends)
    inverses.push_back(
        s.rsa.inverse(raw_of(s, spend.token.signature, context.get()).get(), context.get()));
  std::unordered_map<uint64_t, std::vector<std::pair<uint32_t, uint32_t>>> seen;
  for (uint32_t b = 0; b < s.sales.size(); ++b) {
    auto blinded = openssl::number_from(s.sales[b].request.blinded);
    for (uint32_t t = 0; t < inverses.size(); ++t) {
      auto ratio = s.rsa.product(blinded.get(), inverses[t].get(), context.get());
      std::array<std::byte, token_modulus_bytes> bytes;
      openssl::number_to(ratio.get(), bytes);
      uint64_t last;
      std::memcpy(&last, bytes.data() + bytes.size() - sizeof last, sizeof last);
      seen[last].emplace_back(b, t);
    }
  }
  guesses g(s.spends.size(), 0);
  for (const auto& [ratio, pairs] : seen)
    for (auto [b, t] : pairs)
      if (pairs.size() > 1) g[t] = s.sales[b].account;
  return g;
}

/// The account with the sale whose bytes are most like the token's.
template <class Of>
guesses by_likeness(const story& s, Of of) {
  auto like = [](bytes_view a, bytes_view b) {
    int same = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      same += 8 - std::popcount(uint8_t(a[i] ^ b[i]));
    return same;
  };
  guesses g;
  for (const auto& spend : s.spends) {
    int most = -1;
    uint32_t account = 0;
    for (const auto& one : s.sales)
      if (int now = like(of(one), spend.token.to_bytes()); now > most)
        most = now, account = one.account;
    g.push_back(account);
  }
  return g;
}

/// The best of all.
size_t best(const story& s) {
  size_t most = 0;
  for (const auto& g :
       {by_order(s), by_key(s), by_factor(s),
        by_likeness(s, [](const sale& x) { return bytes_view(x.signature); }),
        by_likeness(s, [](const sale& x) { return bytes_view(x.request.blinded); })})
    most = std::max(most, right(s, g));
  return most;
}

/// By chance 64 of 512, with a deviation of 7.5: five attempts come above 110 once in 10^8 times.
constexpr size_t chance_most = 110, sure_least = tokens_all * 9 / 10;

rsa_public copy_of_rsa(const token_key& key) { return *rsa_public::from(key.rsa().modulus()); }

/// What a wallet keeps of one purchase.
struct bought {
  uint32_t account;
  std::vector<private_token> tokens;
};

class IssuerUnlinked : public ::testing::Test {
 protected:
  void run(uint32_t batch_size) {
    auto c = house.config();
    c.batch = batch_size;
    house.start(c);
    for (uint32_t a = 0; a < accounts; ++a)
      secrets.push_back(house.add("account-" + std::to_string(a), tokens_each));
  }
  /// Over the socket, noted as it passes.
  bought buy(story& s, const token_key& key, uint32_t account, uint32_t count) {
    auto purchase = *token_purchase::make(key, a_challenge.digest(), count);
    auto got = house.buy(secrets[account], purchase);
    EXPECT_EQ(got.status, 200) << got.body;
    auto requests = *read_batch_request(purchase.request());
    auto answers = *read_batch_response(as_bytes(got.body));
    for (size_t i = 0; i < count; ++i)
      s.sales.push_back({account, 10, key.id(), requests[i], answers[i].value()});
    return {account, purchase.finish(key, as_bytes(got.body))->tokens};
  }
  static void spend(story& s, const bought& from) {
    for (const auto& t : from.tokens) s.spends.push_back({t, from.account});
  }

  temporary_folder folder;
  issuer_house house{folder / "issuer"};
  std::vector<std::string> secrets;
  std::mt19937 random{20'260'101};
};

TEST_F(IssuerUnlinked, NobodyTellsWhoseTokenWasSpent) {
  run(tokens_each);
  const auto key = house.key();
  story s{.rsa = copy_of_rsa(key)};
  for (uint32_t a = 0; a < accounts; ++a) spend(s, buy(s, key, a, tokens_each));
  ASSERT_EQ(s.spends.size(), tokens_all);
  std::shuffle(s.spends.begin(), s.spends.end(), random);
  EXPECT_LE(best(s), chance_most);
}

TEST_F(IssuerUnlinked, ButWhoSpendsAtOnceIsTold) {
  run(1);
  const auto key = house.key();
  story s{.rsa = copy_of_rsa(key)};
  std::vector<uint32_t> turns;
  for (uint32_t i = 0; i < tokens_all; ++i) turns.push_back(i % accounts);
  std::shuffle(turns.begin(), turns.end(), random);
  for (uint32_t account : turns) spend(s, buy(s, key, account, 1));
  EXPECT_GE(right(s, by_order(s)), sure_least);
}

/// One sale and its spend, outside the issuer: as one that cheats, or a client that does, would.
void sell(story& s, uint32_t account, const issuer_key& key, bytes_view factor) {
  hash32 nonce;
  bytes salt = random_bytes(pss_salt_bytes, uint32_t(s.sales.size()));
  std::ranges::copy(random_bytes(nonce.size(), 1000 + uint32_t(s.sales.size())), nonce.begin());
  auto pending = pending_token::make(key.published(), a_challenge.digest(), nonce, {salt, factor});
  ASSERT_TRUE(pending) << pending.why().text;
  auto made = *key.sign(pending->request().blinded);
  s.sales.push_back({account, 10, key.published().id(), pending->request(), made});
  s.spends.push_back({*pending->finish(key.published(), made), account});
}

bytes factor_of(uint32_t seed) {
  auto factor = random_bytes(token_modulus_bytes, seed);
  factor[0] = {};
  return factor;
}

TEST_F(IssuerUnlinked, ButAKeyForEachAccountIsATag) {
  std::vector<issuer_key> keys;
  for (uint32_t a = 0; a < accounts; ++a) keys.push_back(issuer_key::make());
  story s{.rsa = copy_of_rsa(keys[0].published())};
  for (uint32_t i = 0; i < tokens_all; ++i) sell(s, i % accounts, keys[i % accounts], factor_of(i));
  std::shuffle(s.spends.begin(), s.spends.end(), random);
  EXPECT_GE(right(s, by_key(s)), sure_least);
}

TEST_F(IssuerUnlinked, ButABlindingUsedAgainIsATag) {
  story s{.rsa = copy_of_rsa(key_of_test().published())};
  for (uint32_t i = 0; i < tokens_all; ++i)
    sell(s, i % accounts, key_of_test(), factor_of(i % accounts));
  std::shuffle(s.spends.begin(), s.spends.end(), random);
  EXPECT_GE(right(s, by_factor(s)), sure_least);
  // The same sales with blindings of their own: no matcher has got better by the way they are made.
  story good{.rsa = copy_of_rsa(key_of_test().published())};
  for (uint32_t i = 0; i < tokens_all; ++i) sell(good, i % accounts, key_of_test(), factor_of(i));
  std::shuffle(good.spends.begin(), good.spends.end(), random);
  EXPECT_LE(best(good), chance_most);
}

/// All bytes in an issuer's folder.
std::string bytes_in(const fs::path& at) {
  std::string all;
  for (const auto& entry : fs::directory_iterator(at)) {
    std::ifstream file(entry.path(), std::ios::binary);
    all.append(std::istreambuf_iterator<char>(file), {});
  }
  return all;
}

TEST_F(IssuerUnlinked, OfAPurchaseOnlyTheSumIsKept) {
  run(tokens_each);
  const auto key = house.key();
  story s{.rsa = copy_of_rsa(key)};
  spend(s, buy(s, key, 3, tokens_each));
  auto change = *pending_token::make(key, a_challenge.digest());
  const auto& spent = s.spends[0].token;
  auto made = house.change(house.claim_of(spent, change.request()));
  ASSERT_EQ(made.status, 200);
  for (bool runs : {true, false}) {
    if (!runs) house.runs.reset();
    const auto kept = bytes_in(folder / "issuer");
    auto holds = [&](bytes_view what) { return kept.find(as_text(what)) != kept.npos; };
    EXPECT_TRUE(holds(as_bytes("account-3")));
    EXPECT_TRUE(holds(spent.nonce)) << "so that it is changed once";
    EXPECT_FALSE(holds(bytes_view(change.request().blinded).first(16)));
    EXPECT_FALSE(holds(as_bytes(made.body).first(16)));
    for (const auto& one : s.sales) {
      EXPECT_FALSE(holds(bytes_view(one.request.blinded).first(16)));
      EXPECT_FALSE(holds(bytes_view(one.signature).first(16)));
    }
    for (const auto& secret : secrets) EXPECT_FALSE(holds(as_bytes(secret.substr(22))));
  }
}

}  // namespace
}  // namespace lethe
