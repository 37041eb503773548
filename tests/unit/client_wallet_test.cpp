// Tokens on a disk: none is offered twice, whatever ends the process.
#include "runtime/client/wallet.hpp"

#include <signal.h>
#include <sys/wait.h>

#include "runtime/client/client_limits.hpp"
#include "tests/unit/client_wallet_samples.hpp"

namespace lethe {
namespace {

using namespace test;

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
  EXPECT_TRUE(refused(wallet::open(file), file.string() + ".journal: another process has it; a "
                                                          "`lethe proxy` or `lethe chat`"));
  w.reset();
  EXPECT_TRUE(wallet::open(file));
}

TEST_F(ClientWallet, IsCountedByOthersWhoChangeNothing) {
  EXPECT_EQ((*wallet::view(file))->count().tokens, 0u);  // before there is one
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(fs::exists(file.string() + ".journal"));
  auto w = open();
  ASSERT_TRUE(w->add(many(5)));
  auto offered = *w->take(key_of_test().published(), digest);
  ASSERT_TRUE(offered);
  auto bytes = [this] {
    return std::pair(file_bytes(file), file_bytes(file.string() + ".journal"));
  };
  const auto before = bytes();
  {
    auto other = *wallet::view(file);
    EXPECT_EQ(other->count(), (wallet::numbers{4, 1}));
    ASSERT_TRUE(other->add(many(3, 100)));  // is not kept
  }
  EXPECT_EQ(bytes(), before);
  EXPECT_EQ(w->count(), (wallet::numbers{4, 1}));
  ASSERT_TRUE(w->forget(offered->token.nonce));
  w.reset();
  EXPECT_EQ((*wallet::view(file))->count(), (wallet::numbers{4, 0}));
}

/// However its files are caught between two of its changes.
TEST_F(ClientWallet, IsCountedWhileItChanges) {
  auto w = open();
  std::atomic<bool> over = false;
  std::thread changes([&] {
    for (uint32_t i = 0; i < 300; ++i) EXPECT_TRUE(w->add(many(1, i)));
    over = true;
  });
  size_t last = 0;
  while (!over) {
    auto seen = wallet::view(file);
    ASSERT_TRUE(seen) << seen.why().text;
    EXPECT_GE((*seen)->count().tokens, last);
    last = (*seen)->count().tokens;
  }
  changes.join();
  EXPECT_EQ((*wallet::view(file))->count().tokens, 300u);
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
  auto taken = take(*w);
  const auto spent = wallet_content::open(file_bytes(file), file_bytes(folder / "wallet.key"));
  ASSERT_TRUE(spent) << spent.why().text;
  const auto hidden = as_text(tokens[0].nonce);
  for (const char* name : {"wallet", "wallet.journal"}) {
    const bytes on_disk = file_bytes(folder / name);
    EXPECT_GT(on_disk.size(), 354u);
    EXPECT_EQ(as_text(on_disk).find(hidden), std::string_view::npos) << name;
    EXPECT_EQ(as_text(on_disk).find(as_text(taken->change.blinded)), std::string_view::npos);
    EXPECT_EQ(fs::status(folder / name).permissions(),
              fs::perms::owner_read | fs::perms::owner_write);
  }
  EXPECT_NE(spent->to_bytes().text().find(hidden), std::string_view::npos);
  const wallet_change shown = token_shown{tokens[0].nonce, {}};
  EXPECT_NE(to_bytes({&shown, 1}).text().find(hidden), std::string_view::npos);
}

TEST_F(ClientWallet, SaysWhatItHasByKeys) {
  auto w = open();
  const hash32 mine = key_of_test(0).published().id(), other = key_of_test(1).published().id();
  ASSERT_TRUE(w->add(std::vector{unsigned_token(1, mine), unsigned_token(2, other)}));
  EXPECT_EQ(w->count_by_key(),
            (std::map<hash32, wallet::numbers>{{mine, {1, 0}}, {other, {1, 0}}}));
  auto t = w->take_leftover(key_of_test(0).published(), digest);
  ASSERT_TRUE(t && *t);
  EXPECT_EQ((*t)->token.key_id, other);
  EXPECT_EQ(w->count_by_key(),
            (std::map<hash32, wallet::numbers>{{mine, {1, 0}}, {other, {0, 1}}}));
  t = w->take_leftover(key_of_test(0).published(), digest);
  ASSERT_TRUE(t);
  EXPECT_FALSE(*t);
}

TEST_F(ClientWallet, RefusesAnotherReleases) {
  open().reset();
  auto other = file_bytes(file);
  other[13] = std::byte{'1'};
  put_file(file, other);
  EXPECT_TRUE(refused(wallet::open(file), file.string() + ": a wallet of another release"));
  fs::remove(folder / "wallet.journal");  // it had none
  EXPECT_TRUE(refused(wallet::open(file), file.string() + ": a wallet of another release"));
  put_file(file, as_bytes("[wallet]"));
  EXPECT_TRUE(refused(wallet::open(file), file.string() + ": not a wallet"));
}

TEST_F(ClientWallet, HoldsItsLimits) {
  auto w = open();
  ASSERT_TRUE(w->add(many(limits::wallet_tokens_max - 1)));
  EXPECT_FALSE(w->add(many(2, 90'000)));
  ASSERT_TRUE(w->add(many(1, 90'000)));
  EXPECT_FALSE(w->add(many(1, 91'000)));
  auto t = take(*w);  // and may come back
  EXPECT_FALSE(w->add(many(1, 91'000)));
  ASSERT_TRUE(w->put_back(t->token.nonce));
  w.reset();
  EXPECT_EQ(open()->count().tokens, limits::wallet_tokens_max);
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

TEST(ClientWalletChange, ReadsWhatItWritesAndRefusesEveryCut) {
  const std::vector<wallet_change> changes = {
      token_shown{unsigned_token(1).nonce, change_choices::draw(key_of_test().published(), digest)},
      token_back{unsigned_token(2).nonce}, token_gone{unsigned_token(3).nonce},
      token_changed{unsigned_token(4).nonce, unsigned_token(5)}};
  const secret_bytes plain = to_bytes(changes);
  auto read = changes_from_bytes(plain.view());
  ASSERT_TRUE(read) << read.why().text;
  ASSERT_EQ(read->size(), 4u);
  EXPECT_EQ(as_text(to_bytes(*read).view()), plain.text());
  EXPECT_EQ(std::get<token_shown>(read->at(0)).change, std::get<token_shown>(changes[0]).change);
  EXPECT_EQ(std::get<token_changed>(read->at(3)).change, unsigned_token(5));
  const size_t ends[] = {0, 743, 776, 809, 1196};
  for (size_t size = 0; size <= plain.size(); ++size)
    EXPECT_EQ(bool(changes_from_bytes(plain.view().first(size))),
              std::ranges::count(ends, size) == 1)
        << size;
  bytes kind = copy_of(plain.view());
  kind[743] = std::byte{5};
  EXPECT_TRUE(refused(changes_from_bytes(kind), "wallet: a change of kind 5"));
}

TEST(ClientWalletChange, IsOfTokensThatAreThere) {
  wallet_content c{.tokens = many(2)};
  const auto choices = change_choices::draw(key_of_test().published(), digest);
  const hash32 first = c.tokens[0].nonce;
  EXPECT_FALSE(apply_change(token_back{first}, c));
  EXPECT_FALSE(apply_change(token_gone{first}, c));
  EXPECT_FALSE(apply_change(token_changed{first, unsigned_token(9)}, c));
  EXPECT_TRUE(apply_change(token_shown{first, choices}, c));
  EXPECT_FALSE(apply_change(token_shown{first, choices}, c));
  EXPECT_TRUE(apply_change(token_back{first}, c));
  EXPECT_TRUE(apply_change(token_shown{first, choices}, c));
  EXPECT_TRUE(apply_change(token_changed{first, unsigned_token(9)}, c));
  EXPECT_EQ(c.tokens.size(), 2u);
  EXPECT_TRUE(apply_change(token_shown{unsigned_token(9).nonce, choices}, c));
  EXPECT_TRUE(apply_change(token_gone{unsigned_token(9).nonce}, c));
  EXPECT_EQ(c, wallet_content{.tokens = {unsigned_token(1)}});
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
    // Neither to be spent nor offered: in flight, or put back as the child's last word. Two a kill.
    EXPECT_GE(w->count().tokens + offered.size() + 2 * (kill_at + 1), given);
  }
  EXPECT_GT(offered.size(), 20u);
  auto w = open();
  while (auto t = take(*w)) EXPECT_TRUE(offered.insert(t->token.nonce).second) << "offered twice";
}

}  // namespace
}  // namespace lethe
