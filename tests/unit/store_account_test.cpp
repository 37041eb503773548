#include "runtime/store/account_store.hpp"

#include <atomic>
#include <fstream>
#include <thread>

#include "runtime/store/change_store.hpp"
#include "store_samples.hpp"

namespace lethe {
namespace {

using namespace test;
using std::chrono::sys_days;
using enum charge_answer;

constexpr sys_days today{std::chrono::days(20'000)};

class StoreAccount : public ::testing::Test {
 protected:
  void reopen() {
    store_.reset();
    store_ = *account_store::open(place_);
  }
  std::string add(std::string_view name, uint32_t quota) {
    auto secret = store_->add(name, quota, today);
    EXPECT_TRUE(secret) << secret.why().text;
    return std::string(as_text(secret->view()));
  }
  std::string who(std::string_view secret) {
    auto found = *store_->authenticate(secret);
    return found ? found->name : "";
  }

  temporary_folder folder_;
  store_place place_{folder_ / "accounts.db"};
  std::unique_ptr<account_store> store_ = *account_store::open(place_);
};

TEST_F(StoreAccount, IsKnownByItsSecret) {
  const std::string ann = add("ann", 5), bob = add("bob", 6);
  EXPECT_TRUE(ann.starts_with("lethe-"));
  EXPECT_EQ(ann.size(), 86u);
  reopen();
  EXPECT_EQ(who(ann), "ann");
  EXPECT_EQ(who(bob), "bob");
  for (size_t i = 0; i < ann.size(); ++i) {
    std::string wrong = ann;
    wrong[i] = wrong[i] == '0' ? '1' : '0';
    EXPECT_EQ(who(wrong), "") << i;
    EXPECT_EQ(who(ann.substr(0, i)), "");
  }
  EXPECT_EQ(who(ann + "0"), "");
  EXPECT_EQ(who(ann.substr(0, 22) + bob.substr(22)), "");  // ann's label, bob's secret
}

TEST_F(StoreAccount, KeepsNoSecret) {
  const std::string secret = add("ann", 5);
  store_.reset();
  std::ifstream file(place_.file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  ASSERT_NE(bytes.find("ann"), bytes.npos);
  std::string raw;
  for (size_t i = 22; i + 1 < secret.size(); i += 2)
    raw.push_back(char(std::stoul(secret.substr(i, 2), nullptr, 16)));
  EXPECT_EQ(bytes.find(raw), bytes.npos);
  EXPECT_EQ(bytes.find(secret.substr(22)), bytes.npos);
}

TEST_F(StoreAccount, NamesAreShortAndPlain) {
  const std::string longest(limits::account_name_max, 'a');
  for (const std::string& good : {longest.substr(1), longest, std::string("a.b_c-9")})
    EXPECT_TRUE(store_->add(good, 1, today)) << good;
  for (const std::string& bad : {longest + "a", std::string(), std::string("Ann"),
                                 std::string("a b"), std::string("a/b"), std::string("a\0b", 3)})
    EXPECT_FALSE(store_->add(bad, 1, today)) << bad;
  EXPECT_FALSE(store_->add("a.b_c-9", 1, today));  // twice
}

TEST_F(StoreAccount, ListsWhatWasAdded) {
  add("bob", 4'294'967'295u);
  add("ann", 0);
  ASSERT_TRUE(store_->revoke("bob"));
  ASSERT_TRUE(store_->set_quota("ann", 12));
  reopen();
  auto all = *store_->list();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "ann");
  EXPECT_EQ(all[0].quota, 12u);
  EXPECT_FALSE(all[0].revoked);
  EXPECT_EQ(all[0].created, today);
  EXPECT_EQ(all[1].quota, 4'294'967'295u);
  EXPECT_TRUE(all[1].revoked);
  EXPECT_FALSE(store_->revoke("cay"));
  EXPECT_FALSE(store_->set_quota("cay", 1));
  auto revoked = store_->set_quota("bob", 5000);
  ASSERT_FALSE(revoked);
  EXPECT_TRUE(revoked.why().text.starts_with("bob is revoked")) << revoked.why().text;
}

TEST_F(StoreAccount, BuysUpToItsQuotaInEachEpoch) {
  add("ann", 10);
  EXPECT_EQ(*store_->charge("ann", 9, 1), charged);
  EXPECT_EQ(*store_->charge("ann", 2, 1), over_quota);
  EXPECT_EQ(*store_->charge("ann", 4'294'967'295u, 1), over_quota);
  EXPECT_EQ(*store_->charge("ann", 1, 1), charged);
  EXPECT_EQ(*store_->charge("ann", 1, 1), over_quota);
  EXPECT_EQ(*store_->used("ann", 1), 10u);
  EXPECT_EQ(*store_->charge("ann", 10, 2), charged);
  ASSERT_TRUE(store_->set_quota("ann", 3));
  EXPECT_EQ(*store_->charge("ann", 1, 2), over_quota);
  EXPECT_EQ(*store_->charge("ann", 3, 3), charged);
}

TEST_F(StoreAccount, BuysNothingOnceRevoked) {
  const std::string secret = add("ann", 10);
  EXPECT_EQ(*store_->charge("bob", 1, 1), no_account);
  ASSERT_TRUE(store_->revoke("ann"));
  EXPECT_EQ(*store_->charge("ann", 1, 1), no_account);
  EXPECT_TRUE((*store_->authenticate(secret))->revoked);
  EXPECT_FALSE(store_->add("ann", 10, today));
}

TEST_F(StoreAccount, CountsBuyersByEpoch) {
  for (const char* name : {"ann", "bob", "cay"}) add(name, 10);
  EXPECT_EQ(*store_->charge("ann", 1, 1), charged);
  EXPECT_EQ(*store_->charge("ann", 1, 1), charged);
  EXPECT_EQ(*store_->charge("bob", 1, 1), charged);
  EXPECT_EQ(*store_->charge("bob", 1, 2), charged);
  EXPECT_EQ(*store_->charge("cay", 0, 1), charged);  // bought nothing
  EXPECT_EQ(*store_->charge("cay", 11, 1), over_quota);
  EXPECT_EQ(*store_->buyers(1), 2u);
  EXPECT_EQ(*store_->buyers(2), 1u);
  EXPECT_EQ(*store_->buyers(3), 0u);
  ASSERT_TRUE(store_->forget_before(2));
  EXPECT_EQ(*store_->buyers(1), 0u);
  EXPECT_EQ(*store_->buyers(2), 1u);
}

TEST_F(StoreAccount, ManyThreadsDoNotPassTheQuota) {
  add("ann", 100);
  std::atomic<uint32_t> bought = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([this, &bought] {
      for (int i = 0; i < 20; ++i)
        if (*store_->charge("ann", 3, 1) == charged) bought += 3;
    });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(bought, 99u);
  EXPECT_EQ(*store_->used("ann", 1), 99u);
}

TEST_F(StoreAccount, TwoProcessesDoNotPassTheQuota) {
  add("ann", 100);
  store_.reset();  // a child must not have it
  pid_t child = ::fork();
  uint32_t bought = 0;
  auto own = account_store::open(place_);
  for (int i = 0; own && i < 60; ++i) bought += *(*own)->charge("ann", 1, 1) == charged;
  if (child == 0) ::_exit(int(bought));
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(bought + uint32_t(WEXITSTATUS(status)), 100u);
  reopen();
  EXPECT_EQ(*store_->used("ann", 1), 100u);
  EXPECT_EQ(*store_->count(), 1u);
}

TEST(StoreChange, IsRecordedForOneDigest) {
  temporary_folder folder;
  const store_place place{folder / "changed.db"};
  auto store = *change_store::open(place);
  EXPECT_EQ(*store->record(token_of(1), digest_of(1)), change_record::fresh);
  EXPECT_EQ(*store->record(token_of(1), digest_of(1)), change_record::same_again);
  EXPECT_EQ(*store->record(token_of(1), digest_of(2)), change_record::refused);
  store.reset();
  store = *change_store::open(place);
  EXPECT_EQ(*store->record(token_of(1), digest_of(2)), change_record::refused);
  EXPECT_EQ(*store->record(token_of(1), digest_of(1)), change_record::same_again);
  EXPECT_EQ(*store->record(token_of(1, 9), digest_of(2)), change_record::fresh);
}

TEST(StoreChange, OfManyThreadsOneDigestWins) {
  temporary_folder folder;
  auto store = *change_store::open({folder / "changed.db"});
  for (uint32_t n = 0; n < 20; ++n) {
    std::atomic<uint32_t> fresh = 0, refused = 0;
    std::vector<std::thread> all;
    for (uint32_t t = 0; t < 4; ++t)
      all.emplace_back([&, t] {
        auto answer = *store->record(token_of(n), digest_of(t));
        fresh += answer == change_record::fresh;
        refused += answer == change_record::refused;
      });
    for (std::thread& t : all) t.join();
    EXPECT_EQ(fresh, 1u);
    EXPECT_EQ(refused, 3u);
  }
}

TEST(StoreChange, DropsAKeyAndNoOther) {
  temporary_folder folder;
  auto store = *change_store::open({folder / "changed.db"});
  for (uint32_t n = 0; n < 20; ++n) ASSERT_TRUE(store->record(token_of(n), digest_of(n)));
  ASSERT_TRUE(store->record(token_of(0, 1), digest_of(0)));
  EXPECT_EQ(*store->count(key_of(0)), 20u);
  ASSERT_TRUE(store->drop_key(key_of(0)));
  EXPECT_EQ(*store->count(key_of(0)), 0u);
  EXPECT_EQ(*store->count(key_of(1)), 1u);
}

}  // namespace
}  // namespace lethe
