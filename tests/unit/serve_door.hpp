#pragma once

#include <gtest/gtest.h>

#include "runtime/base/limits.hpp"
#include "runtime/serve/node_door.hpp"
#include "runtime/token/token_client.hpp"
#include "tests/places.hpp"

/// An engine with a small model, and the door that requests of the private path come in by.
namespace lethe::test {

struct silent final : request_watcher {
  void changed() override {}
};

inline const issuer_key& issuer() {
  static const issuer_key key = issuer_key::make();
  return key;
}

inline private_token bought(const issuer_key& by = issuer()) {
  auto pending = pending_token::make(by.published(), sha256({}));
  auto token = pending->finish(by.published(), *by.sign(pending->request().blinded));
  EXPECT_TRUE(token);
  return *token;
}

class NodeDoor : public testing::Test {
 protected:
  void SetUp() override {
    auto model =
        served_model::open({.path = std::string(places::source) + "/models/tiny", .threads = 1});
    ASSERT_TRUE(model) << model.why().text;
    auto serving = engine::start((*model)->weights->weights(), {.threads = 1});
    ASSERT_TRUE(serving) << serving.why().text;
    engine_ = *std::move(serving);
    model_ = *model;
    begin_with({});
  }
  void begin_with(const answer_shape& shape) {
    door_.emplace(api_service{model_, engine_.get(), {}}, hash32{}, size_t{8}, shape);
    node_ = begin(7);
  }

  node_public begin(uint32_t roster, uint64_t now_ms = 0, uint64_t grace_ms = 1000) {
    std::vector<token_key> issuers;
    issuers.push_back(*token_key::from_spki(issuer().published().spki()));
    auto node = door_->begin(roster, std::move(issuers), now_ms, grace_ms);
    EXPECT_TRUE(node);
    return *node;
  }
  static sealed_request seal(const node_public& to, uint32_t epoch, const private_token& token,
                             std::string_view body, uint32_t chunk_bytes = 0) {
    std::pmr::string plain;
    bhttp_field type{"content-type", "application/json"};
    EXPECT_TRUE(write_request(
        {.authority = "lethe", .path = "/v1/completions", .fields = {&type, 1}, .content = body},
        plain));
    auto made = seal_request(as_bytes(plain), {&to, 1}, epoch, token.hash(), chunk_bytes);
    EXPECT_TRUE(made);
    return *std::move(made);
  }
  static std::vector<std::byte> sealed(const node_public& to, uint32_t epoch,
                                       const private_token& token) {
    return seal(to, epoch, token, R"({"prompt":"Once","max_tokens":1})").message;
  }
  /// Empty: it was opened, and ended again.
  std::string open(bytes_view message, bytes_view token) {
    auto key = door_->find(message);
    if (!key) return "no such key";
    auto call = node_door::open(*key, message, token, std::make_shared<silent>(), whose_);
    if (!call) return call.why().text;
    (*call)->cancel();
    while (!(*call)->cancelled()) (*call)->pump();
    (*call)->forget();
    return {};
  }
  std::string open(const std::vector<std::byte>& message, const private_token& token) {
    return open(bytes_view(message), token.to_bytes());
  }

  sealed_call::fault whose_{};
  std::shared_ptr<const served_model> model_;
  std::unique_ptr<engine> engine_;
  std::optional<node_door> door_;
  node_public node_;
};

}  // namespace lethe::test
