#pragma once

#include <atomic>
#include <fstream>

#include "runtime/issuer/issuer.hpp"
#include "tests/unit/http_peers.hpp"
#include "tests/unit/store_samples.hpp"
#include "tests/unit/token_samples.hpp"

/// An issuer that runs, on loopback and with a clock of the test's.
namespace lethe::test {

using http_test::client;
using http_test::eventually;
using http_test::reply;

inline constexpr uint32_t epoch_s = 100, batch = 4;

inline std::string text_of(bytes_view b) { return std::string(as_text(b)); }

class issuer_house {
 public:
  explicit issuer_house(const fs::path& folder) : folder_(folder) {}

  issuer_config config() {
    return {.listen = {{"issuer", "127.0.0.1:0"}},
            .folder = folder_,
            .epoch_s = epoch_s,
            .batch = batch,
            .now_s = [this] { return now_s.load(); },
            .look_every = std::chrono::milliseconds(2)};
  }
  void start(const issuer_config& c) {
    auto started = issuer::start(c);
    ASSERT_TRUE(started) << started.why().text;
    runs = *std::move(started);
  }
  void start() { start(config()); }

  client connect() const { return client(runs->bound()[0].address); }
  reply send(const std::string& text) const { return connect().ask(text); }
  reply post(const std::string& path, std::string_view media, const std::string& secret,
             bytes_view body) const {
    return send(posted(path, media, secret, body));
  }
  static std::string posted(const std::string& path, std::string_view media,
                            const std::string& secret, bytes_view body) {
    std::string bearer = secret.empty() ? "" : "Authorization: Bearer " + secret + "\r\n";
    return "POST " + path + " HTTP/1.1\r\nHost: i\r\nContent-Type: " + std::string(media) + "\r\n" +
           bearer + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + text_of(body);
  }

  std::string add(std::string_view name, uint32_t quota) const {
    auto accounts = open_accounts(folder_);
    auto secret = (*accounts)->add(name, quota, {});
    EXPECT_TRUE(secret) << secret.why().text;
    return text_of(secret->view());
  }
  uint64_t used(std::string_view name, uint32_t epoch) const {
    return *(*open_accounts(folder_))->used(name, epoch);
  }
  std::string gateway_secret() const {
    std::ifstream file(folder_ / "gateway.secret");
    std::string line;
    std::getline(file, line);
    return line;
  }

  token_directory directory() const {
    auto got = send(http_test::get(std::string(token_directory_path)));
    EXPECT_EQ(got.status, 200);
    return *read_directory(got.body);
  }
  /// What a client buys under now.
  token_key key() const { return *token_key::from_spki(directory().usable(now_s)->key); }

  reply buy(const std::string& secret, const token_purchase& p) const {
    return post("/token-request-batch", token_batch_request_media, secret, p.request());
  }
  int buy(const std::string& secret, size_t count = batch) const {
    return buy(secret, *token_purchase::make(key(), a_challenge.digest(), count)).status;
  }
  std::vector<private_token> tokens(const std::string& secret) const {
    auto k = key();
    auto purchase = *token_purchase::make(k, a_challenge.digest(), batch);
    auto got = buy(secret, purchase);
    EXPECT_EQ(got.status, 200) << got.body;
    auto bought = purchase.finish(k, as_bytes(got.body));
    EXPECT_TRUE(bought) << bought.why().text;
    return bought ? bought->tokens : std::vector<private_token>{};
  }
  static bytes claim_of(const private_token& spent, const token_request& request) {
    return joined({spent.to_bytes(), request.to_bytes()});
  }
  reply change(bytes_view claim) const {
    return post("/change", "application/lethe-change", gateway_secret(), claim);
  }

  std::atomic<uint64_t> now_s{10 * epoch_s};
  std::unique_ptr<issuer> runs;

 private:
  fs::path folder_;
};

}  // namespace lethe::test
