#include "crypto_ohttp_samples.hpp"

namespace lethe {
namespace {

using namespace test;

std::vector<size_t> piece_sizes(size_t content) {
  if (content > 10'000) return {1000, 16384, content};
  return {1, 7, 40, content};
}

TEST(OhttpVectors, RequestsAreSealedAndOpened) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  size_t tried = 0;
  for (const ohttp_example& e : published_examples()) {
    SCOPED_TRACE(e.name);
    auto sealer = ohttp_request_sealer::make(e.key(), e.form,
                                             *hpke_key::from_private(0x20, e.ephemeral_private));
    ASSERT_TRUE(sealer) << sealer.why().text;
    const bytes sealed = sealed_in(*sealer, e.request, e.request_pieces);
    e.sealed_request.expect(sealed);
    for (size_t piece : piece_sizes(sealed.size())) {
      auto keys = e.gateway();
      auto o = opened_request_of(keys, e.form, sealed, piece);
      ASSERT_TRUE(o.whole) << piece;
      EXPECT_EQ(copy_of(as_bytes(o.plain)), e.request);
      EXPECT_EQ(o.exchange->enc, e.enc);
      EXPECT_EQ(copy_of(o.exchange->secret.view()), e.secret);
    }
    ++tried;
  }
  EXPECT_EQ(tried, 14u);
}

TEST(OhttpVectors, AnswersAreSealedAndOpened) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  size_t tried = 0;
  for (const ohttp_example& e : published_examples()) {
    SCOPED_TRACE(e.name);
    ohttp_answer_sealer sealer(e.exchange(), e.nonce);
    const bytes sealed = sealed_in(sealer, e.response, e.response_pieces);
    e.sealed_response.expect(sealed);
    for (size_t piece : piece_sizes(sealed.size())) {
      auto o = opened_answer_of(ohttp_answer_opener(e.exchange()), sealed, piece);
      ASSERT_TRUE(o.whole) << piece;
      EXPECT_EQ(copy_of(as_bytes(o.plain)), e.response);
    }
    ++tried;
  }
  EXPECT_EQ(tried, 14u);
}

TEST(OhttpVectors, ConfigurationsAreReadAndWritten) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  for (const ohttp_example& e : published_examples()) {
    SCOPED_TRACE(e.name);
    auto read = ohttp_config::from_bytes(e.config);
    ASSERT_TRUE(read) << read.why().text;
    EXPECT_EQ(read->to_bytes(), e.config);
    EXPECT_EQ(read->key_id, e.head.key_id);
    EXPECT_TRUE(read->suite());
    auto key = hpke_key::from_private(0x20, e.server_private);
    EXPECT_EQ(copy_of(key->public_key()), read->pk);
  }
}

TEST(OhttpVectors, WhatOneSideSealsOnlyTheOtherOpens) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  for (const ohttp_example& e : published_examples()) {
    SCOPED_TRACE(e.name);
    const auto other = e.form == ohttp_form::whole ? ohttp_form::chunked : ohttp_form::whole;
    auto sealer = *ohttp_request_sealer::make(e.key(), e.form);
    const bytes sealed = sealed_in(sealer, e.request, e.request_pieces);
    auto keys = e.gateway();
    EXPECT_FALSE(opened_request_of(keys, other, sealed).whole) << "another label";
    EXPECT_TRUE(opened_request_of(keys, e.form, sealed).whole) << "a refusal leaves no trace";
  }
}

}  // namespace
}  // namespace lethe
