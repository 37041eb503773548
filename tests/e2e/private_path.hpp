#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "tests/e2e/tap.hpp"

namespace lethe {

inline bool has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

/// Issuer, gateway and relay as they run, with a tap before each unless a test wants none, and a
/// client's folder.
class PrivatePath : public testing::Test {
 protected:
  void SetUp() override {
    issuer_.emplace(issuer_config("127.0.0.1:0"));
    ASSERT_TRUE(issuer_->tells("ready")) << issuer_->errors();
    issuer_port_ = reached(issuer_->port("issuer"), before_issuer_);
    before_gateway();
    start_gateway();
    uint16_t gateway_port = reached(gateway_->port("gateway"), before_gateway_);
    relay_.emplace(host_of{folder_.write("relay.toml", relay_config(gateway_port)), "local"});
    ASSERT_TRUE(relay_->tells("ready")) << relay_->errors();
    uint16_t relay_port = reached(relay_->port("relay"), before_relay_);
    auto added = run_lethe({"account", "add", issuer_->file, "ann", "--quota", "512", "--out",
                            folder_ / "account.secret"});
    ASSERT_EQ(added.exit_code, 0) << added.err;
    trust_ = trust_for(gateway_file_, relay_port, "client.toml");
    ASSERT_TRUE(roster_is_out());
  }

  /// The issuer is there.
  virtual void before_gateway() {}
  std::string url_of(uint16_t port) const { return http_ + "://127.0.0.1:" + std::to_string(port); }
  std::string trust_for(const std::string& gateway_file, uint16_t relay_port,
                        const std::string& name) const {
    std::vector<std::string> words = {"keys", "public", gateway_file, "--relay",
                                      url_of(relay_port)};
    if (!authorities_.empty()) words.insert(words.end(), {"--authorities", authorities_});
    auto trust = run_lethe(words);
    EXPECT_EQ(trust.exit_code, 0) << trust.err;
    return folder_.write(name, trust.out);
  }
  /// Where others reach what listens there.
  uint16_t reached(uint16_t port, std::optional<tap>& before) const {
    return tapped_ ? before.emplace(port).port() : port;
  }
  std::string issuer_config(const std::string& listen) const {
    return "name = \"issuer\"\n[issuer]\nlisten = \"" + listen + "\"\nfolder = \"" + issuer_disk_ +
           "issuer\"\nsecret = \"" + issuer_disk_ +
           "gateway.secret\"\nbatch = " + std::to_string(batch_) + "\n" + certificate_;
  }
  std::string relay_config(uint16_t gateway_port) const {
    return "name = \"relay\"\n[relay]\nlisten = \"127.0.0.1:0\"\ngateway = \"" +
           url_of(gateway_port) + "/\"\n" + authorities("authorities") + certificate_;
  }
  std::string authorities(const std::string& key) const {
    return authorities_.empty() ? "" : key + " = \"" + authorities_ + "\"\n";
  }
  std::string gateway_config(const std::string& listen, const std::string& name = "private",
                             const std::string& folder = "gateway") const {
    return "name = \"" + name + "\"\nprofile = \"" + profile_ + "\"\n[model]\npath = \"" +
           std::string(places::source) + "/models/ember\"\n[batching]\nkv_memory = \"32 MiB\"\n" +
           batching_ + "[gateway]\nlisten = \"" + listen + "\"\nfolder = \"" + gateway_disk_ +
           folder + "\"\nissuer = \"" + url_of(issuer_port_) + "\"\nissuer_secret = \"" +
           (issuer_disk_.empty() ? issuer_->folder() / "" : issuer_disk_) +
           "gateway.secret\"\ntoken_batch = " + std::to_string(batch_) + "\n" +
           authorities("issuer_authorities") + certificate_ + gateway_more_;
  }
  void start_gateway(const std::string& listen = "127.0.0.1:0") {
    gateway_file_ = folder_.write("gateway.toml", gateway_config(listen));
    gateway_.emplace(host_of{gateway_file_, "local", program_});
    ASSERT_TRUE(gateway_->tells("ready")) << gateway_->errors();
  }
  /// What the gateway counts; `roster` is the number of the last one.
  uint64_t gateway_count(const std::string& name) const {
    json_answer status(run_lethe({"status", "--json", "--cluster", gateway_file_}).out);
    uint64_t n = 0;
    if (!status.valid) return 0;
    for (auto s : status.root["services"].get_array())
      if (s["counts"][name].get_uint64().get(n)) n = 0;
    return n;
  }
  /// It tells its counts twice a second.
  bool gateway_counts(const std::string& name, uint64_t n) const {
    for (int i = 0; i < 100 && gateway_count(name) != n; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return gateway_count(name) == n;
  }
  bool roster_is_out(uint64_t above = 0) const {
    for (int i = 0; i < 300 && gateway_count("roster") <= above; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return gateway_count("roster") > above;
  }
  void buy() {
    auto bought = run_lethe({"tokens", "buy", trust_});
    ASSERT_EQ(bought.exit_code, 0) << bought.err;
    ASSERT_EQ(bought.out, "bought 64 tokens; the wallet has 64\n");
  }
  finished ask(const std::string& what, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"fetch", trust_, "--prompt", what});
    return run_lethe(more);
  }

  bool tapped_ = true;
  unsigned batch_ = 64;                    // tokens of one purchase
  std::string program_ = places::program;  // of the cluster
  std::string http_ = "http", certificate_, authorities_;
  std::string profile_ = "strict";
  std::string batching_;
  std::string gateway_more_;                // the rest of its file, from [gateway] on
  std::string issuer_disk_, gateway_disk_;  // where their folders lie; none: beside their files
  scratch_folder folder_;
  std::optional<running_cluster> issuer_, gateway_, relay_;
  std::optional<tap> before_issuer_, before_gateway_, before_relay_;
  uint16_t issuer_port_ = 0;
  std::string gateway_file_, trust_;
};

}  // namespace lethe
