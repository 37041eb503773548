// Keys by token epoch, what is destroyed with them, and what outlives a restart and a kill.

#include "runtime/issuer/key_shelf.hpp"
#include "runtime/store/change_store.hpp"
#include "tests/unit/issuer_house.hpp"

namespace lethe {
namespace {

using namespace test;

std::string file_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class IssuerEpoch : public ::testing::Test {
 protected:
  bool has_key(uint32_t epoch, const char* state = ".pem") {
    return fs::exists(folder / "issuer" / ("key-" + std::to_string(epoch) + state));
  }
  /// The last thing that is done for an epoch that ends: the key has another name, then none.
  bool is_destroyed(uint32_t epoch) { return !has_key(epoch) && !has_key(epoch, ".gone"); }
  void go_to(uint32_t epoch) {
    house.now_s = epoch * epoch_s;
    EXPECT_TRUE(eventually([&] {
      return has_key(epoch + 1) && (epoch < 12 || is_destroyed(epoch - 2)) &&
             house.directory().keys[0].not_before_s == (epoch + 1) * epoch_s;
    }));
  }

  temporary_folder folder;
  issuer_house house{folder / "issuer"};
};

TEST_F(IssuerEpoch, TurnsByItself) {
  house.start();
  const auto ann = house.add("ann", batch);
  const auto old = house.tokens(ann);
  const auto old_key = house.key();
  const auto staged = house.directory().keys[0].key;
  EXPECT_EQ(house.buy(ann), 429);

  go_to(11);
  EXPECT_EQ(house.key().spki(), staged);
  EXPECT_EQ(house.directory().keys.size(), 3u) << "staged, current, previous";
  auto late = house.buy(ann, *token_purchase::make(old_key, a_challenge.digest(), batch));
  EXPECT_EQ(late.status, 422) << "the old key sells nothing";
  EXPECT_EQ(house.buy(ann), 200) << "a new epoch's quota";
  auto change = *pending_token::make(house.key(), a_challenge.digest());
  const auto claim = house.claim_of(old[0], change.request());
  auto got = house.change(claim);
  ASSERT_EQ(got.status, 200) << "the previous key's tokens are still changed, for the new key";
  EXPECT_TRUE(change.finish(house.key(), as_bytes(got.body)));

  go_to(12);
  EXPECT_EQ(house.change(claim).status, 403);
  auto next = *pending_token::make(house.key(), a_challenge.digest());
  EXPECT_EQ(house.change(house.claim_of(old[1], next.request())).status, 403);
  EXPECT_EQ(house.used("ann", 10), 0u);
  EXPECT_EQ(house.used("ann", 11), batch);
  EXPECT_EQ(file_text(folder / "issuer/buyers"), "10 0\n");
  EXPECT_EQ(house.runs->trouble(), "");
  EXPECT_EQ(house.runs->numbers().epoch, 12u);
  house.runs.reset();
  auto changes = *change_store::open({folder / "issuer/changed.db"});
  EXPECT_EQ(*changes->count(old_key.id()), 0u);
}

TEST_F(IssuerEpoch, LogsBuyersRoundedDown) {
  auto accounts = *open_accounts(folder / "issuer");
  for (uint32_t n = 0; n < 32; ++n) {
    auto name = "a" + std::to_string(n);
    ASSERT_TRUE(accounts->add(name, 100, {}));
    for (auto [epoch, buyers] : {std::pair{10u, 29u}, {11u, 20u}, {12u, 32u}})
      ASSERT_TRUE(accounts->charge(name, n < buyers, epoch));
  }
  house.start();
  EXPECT_TRUE(house.directory().over(house.now_s).empty());
  for (auto [epoch, buyers] : {std::pair{11u, 20u}, {12u, 20u}, {13u, 30u}}) {
    go_to(epoch);
    const auto published = house.directory();
    ASSERT_EQ(published.over(house.now_s).size(), 1u);
    EXPECT_EQ(published.over(house.now_s)[0].buyers, buyers) << epoch;
    EXPECT_FALSE(published.usable(house.now_s)->buyers) << "its epoch goes on";
  }
  go_to(14);
  EXPECT_TRUE(eventually([&] {
    return file_text(folder / "issuer/buyers") == "10 20\n11 20\n12 30\n";
  })) << file_text(folder / "issuer/buyers");
}

TEST_F(IssuerEpoch, ARestartKeepsKeysQuotasAndSecret) {
  house.start();
  const auto ann = house.add("ann", batch);
  const auto tokens = house.tokens(ann);
  const auto before = house.directory();
  const auto secret = house.gateway_secret();
  house.runs.reset();
  house.start();
  EXPECT_EQ(house.directory(), before);
  EXPECT_EQ(house.gateway_secret(), secret);
  EXPECT_EQ(house.buy(ann), 429);
  auto change = *pending_token::make(house.key(), a_challenge.digest());
  EXPECT_EQ(house.change(house.claim_of(tokens[0], change.request())).status, 200);
  house.runs.reset();
  house.now_s = 20 * epoch_s;  // it slept through ten epochs
  house.start();
  EXPECT_EQ(house.directory().keys.size(), 2u);
  EXPECT_FALSE(has_key(10) || has_key(11));
  EXPECT_EQ(file_text(folder / "issuer/buyers"), "10 0\n11 0\n");
}

TEST_F(IssuerEpoch, EndsWhatACrashLeftHalfDestroyed) {
  house.start();
  house.runs.reset();
  fs::rename(folder / "issuer/key-10.pem", folder / "issuer/key-10.gone");
  house.now_s = 11 * epoch_s;
  house.start();
  EXPECT_FALSE(fs::exists(folder / "issuer/key-10.gone"));
  EXPECT_EQ(house.directory().keys.size(), 2u);
}

TEST_F(IssuerEpoch, FilesAreForTheirOwnerOnly) {
  house.start();
  house.add("ann", 1);
  EXPECT_EQ(fs::status(folder / "issuer").permissions(), fs::perms::owner_all);
  for (const auto& entry : fs::directory_iterator(folder / "issuer"))
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write)
        << entry.path();
  house.runs.reset();
  fs::permissions(folder / "issuer/key-10.pem", fs::perms::owner_read | fs::perms::others_read);
  expect_refused(issuer::start(house.config()), "chmod 600");
}

TEST_F(IssuerEpoch, HasItsFolderForItself) {
  // Made before there are threads: a process made later would inherit the locks that they hold.
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(told[1]);
    char go;
    if (::read(told[0], &go, 1) != 1) ::_exit(2);
    auto second = issuer::start(house.config());
    ::_exit(!second && second.why().text.find("changed.db") != std::string::npos ? 0 : 1);
  }
  house.start();
  expect_refused(issuer::start(house.config()), "another process has it open; stop that first");
  EXPECT_EQ(::write(told[1], "g", 1), 1);
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  house.runs.reset();
  house.start();
}

TEST_F(IssuerEpoch, RefusesASecretThatIsTooShort) {
  auto secret = [&](const std::string& text) {
    std::ofstream(folder / "secret") << text;
    ::chmod((folder / "secret").c_str(), 0600);
    auto c = house.config();
    c.secret = folder / "secret";
    return issuer::start(c);
  };
  expect_refused(secret(std::string(31, 'a') + "\nand more"), "its first line has 31 bytes");
  expect_refused(secret(std::string(31, 'a')), "a key here has 32 to 256");
  EXPECT_TRUE(secret(std::string(32, 'a')));
  EXPECT_TRUE(secret(std::string(255, 'a') + "\n"));
  expect_refused(secret(std::string(257, 'a')), "a key here has 32 to 256");
}

TEST_F(IssuerEpoch, RefusesABatchThatNobodyCanSend) {
  auto c = house.config();
  for (uint32_t wrong : {0u, uint32_t(limits::token_batch_max + 1)}) {
    c.batch = wrong;
    expect_refused(issuer::start(c), "it has 1 to 256 tokens");
  }
  c.batch = limits::token_batch_max;
  house.start(c);
  EXPECT_EQ(house.buy(house.add("ann", 1000), limits::token_batch_max), 200);
}

TEST(IssuerShelf, KeysOfOneTimeDifferInTheirShortIds) {
  temporary_folder folder;
  key_shelf shelf(folder.path(), epoch_s);
  for (uint32_t epoch = 5; epoch < 8; ++epoch) {
    auto live = shelf.live_in(epoch);
    ASSERT_TRUE(live) << live.why().text;
    EXPECT_EQ(live->size(), epoch == 5 ? 2u : 3u);
  }
  EXPECT_EQ(*shelf.before(7), (std::vector<uint32_t>{5, 6}));
  ASSERT_TRUE(shelf.destroy(5));
  EXPECT_EQ(*shelf.before(7), std::vector<uint32_t>{6});
  EXPECT_FALSE(shelf.id_of(5));
  EXPECT_TRUE(shelf.id_of(6));
}

TEST(IssuerKill, WhatWasSoldStaysCharged) {
  for (uint32_t run = 0; run < 5; ++run) {
    temporary_folder folder;
    issuer_house house(folder / "issuer");
    const auto ann = house.add("ann", 1'000'000);
    auto sold = reported_before_kill(1 + 3 * run, [&](const reporter& report) {
      house.start();
      auto purchase = token_purchase::make(house.key(), a_challenge.digest(), batch);
      for (uint32_t n = 0; house.buy(ann, *purchase).status == 200; ++n) report(n);
    });
    ASSERT_FALSE(sold.empty());
    EXPECT_GE(house.used("ann", 10), batch * sold.size());
    EXPECT_LE(house.used("ann", 10), batch * (sold.size() + 1));
    house.start();
    EXPECT_EQ(house.buy(ann), 200);
  }
}

}  // namespace
}  // namespace lethe
