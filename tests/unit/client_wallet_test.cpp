// Tokens on a disk: none is offered twice, whatever ends the process.
#include "runtime/client/wallet.hpp"

#include <signal.h>
#include <sys/wait.h>

#include "runtime/client/client_limits.hpp"
#include "tests/unit/log_samples.hpp"
#include "tests/unit/token_samples.hpp"

namespace lethe {
namespace {

using namespace test;

const hash32 digest = a_challenge.digest();

/// Of the right form; whether it was signed is no wallet's question.
private_token unsigned_token(uint32_t seed, const hash32& key = key_of_test().published().id()) {
  private_token t{.challenge_digest = digest, .key_id = key};
  std::ranges::copy(random_bytes(32, seed), t.nonce.begin());
  return t;
}
std::vector<private_token> many(uint32_t count, uint32_t from = 0) {
  std::vector<private_token> made;
  for (uint32_t i = 0; i < count; ++i) made.push_back(unsigned_token(from + i));
  return made;
}

struct ClientWallet : ::testing::Test {
  scratch folder;
  fs::path file = folder / "wallet";

  std::unique_ptr<wallet> open() {
    auto made = wallet::open(file);
    EXPECT_TRUE(made) << made.why().text;
    return made ? *std::move(made) : nullptr;
  }
  std::optional<token_offer> take(wallet& w) {
    auto taken = w.take(key_of_test().published(), digest);
    EXPECT_TRUE(taken) << taken.why().text;
    return taken ? *taken : std::nullopt;
  }
};

TEST_F(ClientWallet, KeepsWhatItWasGiven) {
  {
    auto w = open();
    ASSERT_TRUE(w->add(many(5)));
    EXPECT_EQ(w->count().tokens, 5u);
  }
  auto w = open();
  EXPECT_EQ(w->count().tokens, 5u);
  EXPECT_EQ(w->count(key_of_test().published().id()), 5u);
  EXPECT_EQ(w->count(hash32{}), 0u);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  auto key = folder / "wallet.key";
  EXPECT_EQ(fs::status(key).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ClientWallet, GivesEachTokenOnceInRandomOrder) {
  auto w = open();
  std::vector<std::vector<hash32>> orders;
  for (uint32_t round = 0; round < 3; ++round) {
    ASSERT_TRUE(w->add(many(8, 100 * round)));
    std::vector<hash32> order;
    while (auto t = take(*w)) order.push_back(t->token.nonce);
    ASSERT_EQ(order.size(), 8u);
    EXPECT_EQ(std::set<hash32>(order.begin(), order.end()).size(), 8u);
    orders.push_back(order);
  }
  auto sorted = 0;
  for (uint32_t round = 0; round < 3; ++round) {
    auto in_order = many(8, 100 * round);
    sorted += std::ranges::equal(orders[round], in_order, {}, {}, &private_token::nonce);
  }
  EXPECT_LT(sorted, 3);  // one in 40,320 each
}

TEST_F(ClientWallet, LeavesTokensForOtherChallengesAlone) {
  auto w = open();
  ASSERT_TRUE(w->add(many(1)));
  auto taken = w->take(key_of_test().published(), sha256({as_bytes("other")}));
  ASSERT_TRUE(taken);
  EXPECT_FALSE(*taken);
  EXPECT_EQ(w->count().tokens, 1u);
}

TEST_F(ClientWallet, ClaimsChangeAfterARestart) {
  const issuer_key& issuer = key_of_test();
  std::optional<token_offer> spent;
  {
    auto w = open();
    ASSERT_TRUE(w->add(many(1)));
    spent = take(*w);
    EXPECT_TRUE(w->claimable().empty());  // its call may still be answered
  }
  auto w = open();
  EXPECT_EQ(w->count().tokens, 0u);
  auto due = w->claimable();
  ASSERT_EQ(due.size(), 1u);
  auto again = w->offer_again(due[0]);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->token, spent->token);
  EXPECT_EQ(again->change, spent->change);
  auto signature = *issuer.sign(again->change.blinded);
  auto wrong = signature;
  wrong[7] ^= std::byte{1};
  EXPECT_TRUE(refused(w->take_change(spent->token.nonce, wrong), "change: "));
  EXPECT_EQ(w->claimable().size(), 1u);
  ASSERT_TRUE(w->take_change(spent->token.nonce, signature));
  EXPECT_TRUE(w->claimable().empty());
  w.reset();
  w = open();
  auto got = take(*w);
  ASSERT_TRUE(got);
  EXPECT_NE(got->token.nonce, spent->token.nonce);
  EXPECT_TRUE(verify_token(got->token, issuer.published(), digest));
}

TEST_F(ClientWallet, PutsBackOnlyWhatIsInUse) {
  auto w = open();
  ASSERT_TRUE(w->add(many(1)));
  auto t = take(*w);
  ASSERT_TRUE(w->put_back(t->token.nonce));
  EXPECT_EQ(w->count().tokens, 1u);
  EXPECT_FALSE(w->put_back(t->token.nonce));
  t = take(*w);
  w->leave_open(t->token.nonce);
  EXPECT_FALSE(w->put_back(t->token.nonce));
  EXPECT_EQ(w->claimable().size(), 1u);
  ASSERT_TRUE(w->forget(t->token.nonce));
  EXPECT_FALSE(w->forget(t->token.nonce));
  EXPECT_EQ(w->count().open, 0u);
}

TEST_F(ClientWallet, DropsTokensOfRetiredKeys) {
  auto w = open();
  const hash32 live = key_of_test(0).published().id(), dead = key_of_test(1).published().id();
  ASSERT_TRUE(w->add(
      std::vector{unsigned_token(1, live), unsigned_token(2, dead), unsigned_token(3, dead)}));
  auto dropped = w->retire({&live, 1});
  ASSERT_TRUE(dropped);
  EXPECT_EQ(*dropped, 2u);
  EXPECT_EQ(w->count(live), 1u);
  EXPECT_EQ(w->count(dead), 0u);
  EXPECT_EQ(*w->retire({&live, 1}), 0u);
}

TEST_F(ClientWallet, IsForOneProcessAtATime) {
  auto w = open();
  EXPECT_TRUE(refused(wallet::open(file), file.string() + ".lock: another process has it"));
  w.reset();
  EXPECT_TRUE(wallet::open(file));
}

TEST_F(ClientWallet, RefusesDamageAtEveryByteAndEveryCut) {
  {
    auto w = open();
    ASSERT_TRUE(w->add(many(2)));
    take(*w);
  }
  const bytes good = file_bytes(file);
  for (size_t at = 0; at < good.size(); at += 7) {
    put_file(file, flipped(good, at));
    EXPECT_TRUE(refused(wallet::open(file), file.string())) << at;
  }
  for (size_t size = 0; size < good.size(); size += 5) {
    put_file(file, bytes_view(good).first(size));
    EXPECT_TRUE(refused(wallet::open(file), file.string())) << size;
  }
  put_file(file, good);
  EXPECT_TRUE(wallet::open(file));
}

TEST_F(ClientWallet, RefusesAnOlderCopyOfItself) {
  {
    auto w = open();
    ASSERT_TRUE(w->add(many(3)));
  }
  const bytes before = file_bytes(file);
  {
    auto w = open();
    take(*w);
  }
  const bytes after = file_bytes(file);
  put_file(file, before);
  EXPECT_TRUE(refused(wallet::open(file), file.string() + ": an older copy"));
  put_file(file, after);
  EXPECT_TRUE(wallet::open(file));
  fs::remove(file);
  EXPECT_TRUE(refused(wallet::open(file), file.string() + ": it is gone"));
}

TEST_F(ClientWallet, WantsItsKeyAndItAlone) {
  open().reset();
  const auto key = folder / "wallet.key";
  const bytes right = file_bytes(key);
  fs::permissions(key, fs::perms::group_read, fs::perm_options::add);
  EXPECT_TRUE(refused(wallet::open(file), key.string() + ": others may read"));
  fs::permissions(key, fs::perms::group_read, fs::perm_options::remove);
  put_file(key, flipped(right, 3));
  EXPECT_TRUE(refused(wallet::open(file), file.string() + ": it does not open"));
  fs::remove(key);
  EXPECT_TRUE(refused(wallet::open(file), key.string() + ": the key of"));
}

TEST_F(ClientWallet, NamesNoTokenInTheClear) {
  auto w = open();
  auto tokens = many(1);
  ASSERT_TRUE(w->add(tokens));
  const bytes on_disk = file_bytes(file);
  EXPECT_EQ(as_text(on_disk).find(as_text(tokens[0].nonce)), std::string_view::npos);
  const secret_bytes plain = wallet_content{.tokens = tokens}.to_bytes();
  EXPECT_NE(plain.text().find(as_text(tokens[0].nonce)), std::string_view::npos);
}

TEST_F(ClientWallet, HoldsItsLimits) {
  auto w = open();
  ASSERT_TRUE(w->add(many(limits::wallet_tokens_max - 1)));
  EXPECT_FALSE(w->add(many(2, 90'000)));
  ASSERT_TRUE(w->add(many(1, 90'000)));
  EXPECT_FALSE(w->add(many(1, 91'000)));
}

TEST(ClientWalletContent, ReadsWhatItWritesAndRefusesEveryCut) {
  wallet_content c{.generation = 9, .tokens = many(3)};
  c.spends.push_back({unsigned_token(50), change_choices::draw(key_of_test().published(), digest)});
  const secret_bytes plain = c.to_bytes();
  auto read = wallet_content::from_bytes(plain.view());
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(*read, c);
  for (size_t size = 0; size < plain.size(); ++size)
    EXPECT_FALSE(wallet_content::from_bytes(plain.view().first(size))) << size;
  bytes more = copy_of(plain.view());
  more.push_back({});
  EXPECT_FALSE(wallet_content::from_bytes(more));
  c.tokens.push_back(c.tokens[0]);
  EXPECT_TRUE(refused(wallet_content::from_bytes(c.to_bytes().view()), "wallet: a token is there"));
}

TEST(ClientWalletContent, HoldsItsLimits) {
  wallet_content c{.tokens = many(limits::wallet_tokens_max)};
  EXPECT_TRUE(wallet_content::from_bytes(c.to_bytes().view()));
  c.tokens.push_back(unsigned_token(99'999));
  EXPECT_TRUE(refused(wallet_content::from_bytes(c.to_bytes().view()), "wallet: 4097 tokens"));
  wallet_content s;
  const auto choices = change_choices::draw(key_of_test().published(), digest);
  for (uint32_t i = 0; i < limits::wallet_spends_max; ++i)
    s.spends.push_back({unsigned_token(i), choices});
  EXPECT_TRUE(wallet_content::from_bytes(s.to_bytes().view()));
  s.spends.push_back({unsigned_token(5000), choices});
  EXPECT_TRUE(refused(wallet_content::from_bytes(s.to_bytes().view()), "wallet: 1025 spends"));
}

/// A child that offers tokens, telling each down the pipe before it would leave, until it is
/// killed.
[[noreturn]] void offer_until_killed(const fs::path& file, int to) {
  auto w = wallet::open(file);
  if (!w) _exit(3);
  for (uint32_t turn = 0;; ++turn) {
    auto t = (*w)->take(key_of_test().published(), digest);
    if (!t) _exit(4);
    if (!*t) _exit(0);
    const auto& nonce = (*t)->token.nonce;
    if (turn % 4 == 3) {  // it never left
      if (!(*w)->put_back(nonce)) _exit(5);
      continue;
    }
    if (::write(to, nonce.data(), nonce.size()) != ssize_t(nonce.size())) _exit(6);
    if (turn % 2 == 0 && !(*w)->forget(nonce)) _exit(7);
    if (turn % 2 == 1) (*w)->leave_open(nonce);
  }
}

TEST_F(ClientWallet, OffersNoTokenTwiceHoweverOftenItIsKilled) {
  constexpr uint32_t given = 200, kills_max = 40;
  ASSERT_TRUE(open()->add(many(given)));
  std::set<hash32> offered;
  std::mt19937 random(20240607);
  for (uint32_t kill_at = 0; kill_at < kills_max; ++kill_at) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) offer_until_killed(file, ends[1]);
    ::close(ends[1]);
    hash32 nonce;
    // A few offers, then at whatever point it has come to.
    for (uint32_t left = random() % 8; left > 0; --left) {
      const bool told = ::read(ends[0], nonce.data(), nonce.size()) == ssize_t(nonce.size());
      EXPECT_TRUE(!told || offered.insert(nonce).second) << "offered twice";
    }
    ::usleep(random() % 3000);
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    while (::read(ends[0], nonce.data(), nonce.size()) == ssize_t(nonce.size()))
      EXPECT_TRUE(offered.insert(nonce).second) << "offered twice";
    ::close(ends[0]);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    auto w = open();
    ASSERT_TRUE(w);
    // What is neither to be spent nor was offered was in flight: one token a kill at most.
    EXPECT_GE(w->count().tokens + offered.size() + kill_at + 1, given);
  }
  EXPECT_GT(offered.size(), 20u);
  auto w = open();
  while (auto t = take(*w)) EXPECT_TRUE(offered.insert(t->token.nonce).second) << "offered twice";
}

}  // namespace
}  // namespace lethe
