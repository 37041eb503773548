// What accounts get from an issuer over its socket, and what it says to everyone else.

#include <sqlite3.h>

#include "tests/unit/issuer_house.hpp"

namespace lethe {
namespace {

using namespace test;

class IssuerSells : public ::testing::Test {
 protected:
  void SetUp() override { house.start(); }
  pending_token pending() { return *pending_token::make(house.key(), a_challenge.digest()); }
  int buy_one(const std::string& secret, bytes_view body,
              std::string_view media = token_request_media) {
    return house.post("/token-request", media, secret, body).status;
  }

  temporary_folder folder;
  issuer_house house{folder / "issuer"};
};

TEST_F(IssuerSells, ABatchForItsQuotaAndNoMore) {
  const auto ann = house.add("ann", 2 * batch);
  for (const auto& t : house.tokens(ann))
    EXPECT_TRUE(verify_token(t, house.key(), a_challenge.digest()));
  EXPECT_EQ(house.buy(ann), 200);
  auto purchase = *token_purchase::make(house.key(), a_challenge.digest(), batch);
  house.now_s = 10 * epoch_s + 38;
  auto full = house.buy(ann, purchase);
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.field("Retry-After"), "65") << "62 s are left, in steps of 5";
  EXPECT_EQ(house.used("ann", 10), 2 * batch);
  EXPECT_EQ(house.runs->numbers().bought, 2 * batch);
  EXPECT_EQ(house.runs->numbers().refused, 1u);
}

TEST_F(IssuerSells, ABatchIsWholeOrNotAtAll) {
  for (uint32_t quota : {batch - 1, batch, batch + 1}) {
    const auto name = "a" + std::to_string(quota);
    const auto secret = house.add(name, quota);
    EXPECT_EQ(house.buy(secret), quota < batch ? 429 : 200) << quota;
    EXPECT_EQ(house.used(name, 10), quota < batch ? 0 : batch);
  }
  // One of the four is not under the current key, or no number below it: nobody pays.
  const auto ann = house.add("ann", 100);
  for (bool key_is_wrong : {true, false}) {
    std::vector<token_request> requests;
    for (uint32_t i = 0; i < batch; ++i) requests.push_back(pending().request());
    if (key_is_wrong) ++requests[2].short_key_id;
    if (!key_is_wrong) requests[2].blinded.fill(std::byte{0xff});
    auto got = house.post("/token-request-batch", token_batch_request_media, ann,
                          write_batch_request(requests));
    EXPECT_EQ(got.status, 422);
  }
  EXPECT_EQ(house.used("ann", 10), 0u);
}

TEST_F(IssuerSells, OneBatchSizeForEveryone) {
  const auto ann = house.add("ann", 1000);
  for (size_t count : {size_t{1}, size_t{batch - 1}, size_t{batch + 1}, limits::token_batch_max})
    EXPECT_EQ(house.buy(ann, count), 403) << count;
  EXPECT_EQ(house.used("ann", 10), 0u);
  EXPECT_EQ(house.buy(ann, batch), 200);
}

TEST_F(IssuerSells, ASingleTokenCostsOne) {
  const auto ann = house.add("ann", 1);
  auto p = pending();
  auto got = house.post("/token-request", token_request_media, ann, p.request().to_bytes());
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.field("Content-Type"), token_response_media);
  EXPECT_TRUE(p.finish(house.key(), as_bytes(got.body)));
  EXPECT_EQ(buy_one(ann, pending().request().to_bytes()), 429);
}

TEST_F(IssuerSells, NothingWithoutAnAccount) {
  const auto ann = house.add("ann", 100);
  const auto body = pending().request().to_bytes();
  for (const auto& wrong : {std::string(), ann.substr(1), ann + "0", house.gateway_secret()})
    EXPECT_EQ(buy_one(wrong, body), 401);
  auto got = house.post("/token-request", token_request_media, "", body);
  EXPECT_EQ(got.field("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(buy_one(ann, body), 200);
  ASSERT_TRUE((*open_accounts(folder / "issuer"))->revoke("ann")) << "while it runs";
  EXPECT_EQ(buy_one(ann, body), 401);
  EXPECT_EQ(house.used("ann", 10), 1u);
}

TEST_F(IssuerSells, RefusesWhatHasNotTheForm) {
  const auto ann = house.add("ann", 100);
  const auto body = pending().request().to_bytes();
  for (size_t cut = 0; cut < body.size(); ++cut)
    ASSERT_EQ(buy_one(ann, bytes_view(body).first(cut)), 422) << cut;
  EXPECT_EQ(buy_one(ann, joined({body, as_bytes("0")})), 422);
  EXPECT_EQ(buy_one(ann, flipped(copy_of(body), 1)), 422) << "another token type";
  EXPECT_EQ(buy_one(ann, flipped(copy_of(body), 2)), 422) << "another key";
  EXPECT_EQ(buy_one(ann, body, "application/octet-stream"), 415);
  EXPECT_EQ(buy_one(ann, body, token_batch_request_media), 415);
  EXPECT_EQ(house.post("/other", token_request_media, ann, body).status, 404);
  EXPECT_EQ(house.post("/token-request?x", token_request_media, ann, body).status, 404);
  EXPECT_EQ(house.send(http_test::get("/token-request")).status, 405);
  EXPECT_EQ(house.post(std::string(token_directory_path), token_request_media, ann, {}).status,
            405);
  EXPECT_EQ(buy_one(ann, bytes(limits::issuer_body_bytes_max)), 422);
  EXPECT_EQ(buy_one(ann, bytes(limits::issuer_body_bytes_max + 1)), 413);
  EXPECT_EQ(house.used("ann", 10), 0u);
}

TEST_F(IssuerSells, TheDirectoryIsTheSameForEveryone) {
  auto got = house.send(http_test::get(std::string(token_directory_path)));
  EXPECT_EQ(got.field("Content-Type"), token_directory_media);
  EXPECT_EQ(got.field("Cache-Control"), "public, max-age=50");
  auto read = read_directory(got.body);
  ASSERT_TRUE(read) << read.why().text;
  ASSERT_EQ(read->keys.size(), 2u);
  EXPECT_EQ(read->keys[0].not_before_s, 11 * epoch_s) << "staged";
  EXPECT_EQ(read->keys[1].not_before_s, 10 * epoch_s);
  const auto ann = house.add("ann", 100);
  auto again =
      house.send("GET " + std::string(token_directory_path) +
                 " HTTP/1.1\r\nHost: i\r\nAuthorization: Bearer " + ann + "\r\nCookie: me\r\n\r\n");
  EXPECT_EQ(again.body, got.body);
}

/// Holds the accounts' file as a slow disk would.
class held_accounts {
 public:
  explicit held_accounts(const fs::path& file) {
    EXPECT_EQ(sqlite3_open(file.c_str(), &db_), SQLITE_OK);
    sqlite3_busy_timeout(db_, 5000);
    EXPECT_EQ(sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~held_accounts() { sqlite3_close(db_); }

 private:
  sqlite3* db_ = nullptr;
};

TEST_F(IssuerSells, SaysThatItIsBusyAndKeepsServingTheDirectory) {
  const auto ann = house.add("ann", 100);
  auto c = house.config();
  c.threads = 1;
  c.waiting_max = 1;
  house.runs.reset();
  house.start(c);
  const auto text =
      house.posted("/token-request", token_request_media, ann, pending().request().to_bytes());
  std::vector<client> all;
  {
    held_accounts disk(folder / "issuer/accounts.db");
    for (int i = 0; i < 4; ++i) {
      all.push_back(house.connect());
      ASSERT_TRUE(all.back().send(text));
    }
    EXPECT_TRUE(eventually([&] { return house.runs->numbers().refused >= 2; }));
    EXPECT_EQ(house.send(http_test::get(std::string(token_directory_path))).status, 200);
  }
  size_t sold = 0, busy = 0;
  for (auto& one : all) {
    auto got = one.take_reply();
    sold += got.status == 200;
    busy += got.status == 503 && got.field("Retry-After") == "5";
  }
  EXPECT_EQ(sold + busy, 4u);
  EXPECT_GE(sold, 1u);
  EXPECT_EQ(house.used("ann", 10), sold);
}

TEST_F(IssuerSells, ToManyAtOnceNoMoreThanTheQuota) {
  const auto ann = house.add("ann", 5 * batch);
  std::atomic<uint32_t> good = 0, full = 0;
  std::vector<std::thread> buyers;
  for (int t = 0; t < 4; ++t)
    buyers.emplace_back([&] {
      for (int i = 0; i < 3; ++i) {
        int status = house.buy(ann);
        good += status == 200;
        full += status == 429;
      }
    });
  for (auto& b : buyers) b.join();
  EXPECT_EQ(good, 5u);
  EXPECT_EQ(full, 7u);
}

}  // namespace
}  // namespace lethe
