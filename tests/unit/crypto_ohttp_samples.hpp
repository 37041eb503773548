#pragma once

#include <fmt/format.h>

#include <fstream>

#include "crypto_samples.hpp"
#include "runtime/base/varint.hpp"
#include "runtime/crypto/ohttp_request.hpp"

/// A gateway, its client, and the published examples of oblivious HTTP.
namespace lethe::test {

constexpr size_t head_and_enc_bytes = ohttp_head::wire_bytes + 32;
constexpr uint64_t grace = 100;
constexpr ohttp_form both_forms[] = {ohttp_form::whole, ohttp_form::chunked};

/// A message, or its length and hash.
struct expected_bytes {
  size_t length;
  hash32 digest;
  void expect(bytes_view b) const {
    EXPECT_EQ(b.size(), length);
    EXPECT_EQ(sha256({b}), digest);
  }
};

/// One published exchange.
struct ohttp_example {
  std::string name;
  ohttp_form form;
  ohttp_head head;
  bytes server_private, config, ephemeral_private, enc, nonce, secret;
  bytes request, response;  // in the clear
  std::vector<size_t> request_pieces, response_pieces;
  expected_bytes sealed_request, sealed_response;

  ohttp_config key() const {
    auto read = ohttp_config::from_bytes(config);
    EXPECT_TRUE(read);
    read->algorithms = {{head.suite.kdf, head.suite.aead}};
    return *std::move(read);
  }
  ohttp_keys gateway() const {
    auto current = hpke_key::from_private(0x20, server_private);
    auto made = ohttp_keys::make({.suite = head.suite, .grace = grace, .first_id = head.key_id},
                                 *std::move(current), *hpke_key::make(0x20));
    if (!made) ADD_FAILURE() << made.why().text;
    return *std::move(made);
  }
  ohttp_exchange exchange() const { return {form, head.suite, enc, key_bytes(secret)}; }
};

inline bytes body_of(std::string_view label, size_t size) {
  bytes out;
  for (size_t i = 0; out.size() < size; ++i) {
    const hash32 part = sha256({as_bytes(fmt::format("{}:{}", label, i))});
    out.insert(out.end(), part.begin(), part.end());
  }
  out.resize(size);
  return out;
}

/// Binary HTTP as the large examples have it: one header, the body in pieces if chunked.
inline bytes bhttp_of(bool response, bool chunked, bytes_view body) {
  bytes out{std::byte(uint8_t(2 * chunked + response))};
  auto add = [&out](bytes_view part) { out.insert(out.end(), part.begin(), part.end()); };
  auto add_sized = [&](bytes_view part) { append_varint(out, part.size()), add(part); };
  if (response)
    append_varint(out, 200);
  else
    for (auto part : {"POST", "https", "target.example", "/v1/chat/completions"})
      add_sized(as_bytes(part));
  bytes fields;
  for (std::string_view part : {"content-type", "application/octet-stream"}) {
    append_varint(fields, part.size());
    fields.insert(fields.end(), as_bytes(part).begin(), as_bytes(part).end());
  }
  if (chunked) {
    add(fields);
    append_varint(out, 0);
    for (; !body.empty(); body = body.subspan(std::min<size_t>(body.size(), 16384)))
      add_sized(body.first(std::min<size_t>(body.size(), 16384)));
    append_varint(out, 0);
  } else {
    add_sized(fields);
    add_sized(body);
  }
  append_varint(out, 0);
  return out;
}

inline expected_bytes expected_of(simdjson::dom::element e) {
  if (e.is_string()) {
    const bytes b = from_hex(std::string_view(e));
    return {b.size(), sha256({b})};
  }
  expected_bytes out{.length = size_t(uint64_t(e["length"])), .digest = {}};
  std::ranges::copy(hex_of(e, "sha256"), out.digest.begin());
  return out;
}

inline ohttp_example example_of(simdjson::dom::element v) {
  std::string_view name;
  bool chunked = v["chunked"].get_bool().value_unsafe();
  if (v["name"].get_string().get(name)) {  // the two of the specifications have no name
    name = v["request_label"];
    chunked = name.find("chunked") != name.npos;
  }
  auto plain = [&](const char* field, const char* label, const char* length, bool response) {
    if (v[field].is_string()) return hex_of(v, field);
    bytes b = bhttp_of(response, chunked,
                       body_of(std::string_view(v[label]), size_t(uint64_t(v[length]))));
    expected_of(v[field]).expect(b);
    return b;
  };
  ohttp_example out{
      .name = std::string(name),
      .form = chunked ? ohttp_form::chunked : ohttp_form::whole,
      .head = {.key_id = uint8_t(uint64_t(v["key_id"])),
               .suite = {.aead = uint16_t(uint64_t(v["aead_id"]))}},
      .server_private = hex_of(v, "server_private_key"),
      .config = hex_of(v, "key_config"),
      .ephemeral_private = hex_of(v, "client_ephemeral_private_key"),
      .enc = hex_of(v, "client_ephemeral_public_key"),
      .secret = hex_of(v, "response_secret"),
      .request = plain("bhttp_request", "request_body_label", "request_body_length", false),
      .response = plain("bhttp_response", "response_body_label", "response_body_length", true),
      .sealed_request = expected_of(v["encapsulated_request"]),
      .sealed_response = expected_of(v["encapsulated_response"])};
  out.nonce = v["response_nonce"].is_string() ? hex_of(v, "response_nonce")
                                              : hex_of(v, "encapsulated_response");
  out.nonce.resize(out.secret.size());
  auto pieces = [&](const char* field, size_t all) {
    std::vector<size_t> sizes;
    if (!chunked) return std::vector{all};
    for (auto e : v[field].get_array()) sizes.push_back(size_t(uint64_t(e)));
    return sizes;
  };
  out.request_pieces = pieces("request_chunk_lengths", out.request.size());
  out.response_pieces = pieces("response_chunk_lengths", out.response.size());
  return out;
}

/// All 14: the worked examples of both specifications, and 12 more.
inline std::vector<ohttp_example> published_examples() {
  std::vector<ohttp_example> all;
  simdjson::dom::parser parser;
  for (auto file : {"ohttp-rfc9458.json", "ohttp-chunked.json"})
    all.push_back(example_of(parser.load((protocol_vectors() / file).string()).value()));
  auto extra = parser.load((protocol_vectors() / "ohttp-extra.json").string());
  for (simdjson::dom::element v : extra["vectors"].get_array()) all.push_back(example_of(v));
  return all;
}

/// All pieces sealed, the last one as the final one.
template <class Sealer>
bytes sealed_in(Sealer& with, bytes_view plain, const std::vector<size_t>& pieces) {
  bytes out;
  for (size_t i = 0; i < pieces.size(); ++i) {
    auto sealed = with.seal(plain.first(pieces[i]), i + 1 == pieces.size(), out);
    if (!sealed) ADD_FAILURE() << sealed.why().text;
    plain = plain.subspan(pieces[i]);
  }
  EXPECT_TRUE(plain.empty() && with.ended());
  return out;
}

/// What an opener makes of content that comes in pieces.
struct outcome {
  bool whole = false;
  ohttp_refusal why = ohttp_refusal::none;
  std::pmr::string plain;
  std::optional<ohttp_exchange> exchange;
};

inline outcome pushed(auto& opener, bytes_view content, size_t piece) {
  outcome o;
  o.whole = true;
  while (o.whole && !content.empty()) {
    bytes_view part = content.first(std::min(piece, content.size()));
    content = content.subspan(part.size());
    o.whole = bool(opener.push(part, o.plain));
  }
  return o;
}

inline outcome opened_request_of(const ohttp_keys& keys, ohttp_form form, bytes_view content,
                                 size_t piece = SIZE_MAX, uint64_t now = 0) {
  ohttp_request_opener opener(keys, form, now);
  outcome o = pushed(opener, content, piece);
  auto ended = opener.finish(o.plain);
  EXPECT_TRUE(o.whole || !ended) << "it is poisoned";
  o.whole = bool(ended);
  o.why = opener.refusal();
  EXPECT_EQ(o.whole, o.why == ohttp_refusal::none);
  if (ended) o.exchange = *std::move(ended);
  std::pmr::string more;
  EXPECT_FALSE(opener.push(as_bytes("x"), more) || opener.finish(more)) << "it is over";
  EXPECT_EQ(more, "");
  return o;
}

inline outcome opened_answer_of(ohttp_answer_opener opener, bytes_view content,
                                size_t piece = SIZE_MAX) {
  outcome o = pushed(opener, content, piece);
  const bool ended = bool(opener.finish(o.plain));
  EXPECT_TRUE(o.whole || !ended) << "it is poisoned";
  o.whole = ended;
  o.why = opener.refusal();
  EXPECT_EQ(o.whole, o.why == ohttp_refusal::none);
  std::pmr::string more;
  EXPECT_FALSE(opener.push(as_bytes("x"), more) || opener.finish(more)) << "it is over";
  EXPECT_EQ(more, "");
  return o;
}

/// A gateway of one suite, and what a client knows of it. One of the same seed has the same keys,
/// and has seen nothing.
struct gateway {
  explicit gateway(uint16_t aead = 1, size_t seals_max = 1000, uint32_t seed = 1)
      : keys(*ohttp_keys::make({.suite = {.aead = aead}, .grace = grace, .seals_max = seals_max},
                               *hpke_key::derive(0x20, random_bytes(32, seed)),
                               *hpke_key::derive(0x20, random_bytes(32, seed + 1)))),
        known(read_ohttp_keys(keys.published())->front()) {}
  ohttp_keys keys;
  ohttp_config known;

  ohttp_request_sealer sealer(ohttp_form form) const {
    return *ohttp_request_sealer::make(known, form);
  }
  bytes request(ohttp_form form, bytes_view plain, std::vector<size_t> pieces = {}) const {
    auto s = sealer(form);
    if (pieces.empty()) pieces = {plain.size()};
    return sealed_in(s, plain, pieces);
  }
  ohttp_refusal refusal(ohttp_form form, bytes_view content, uint64_t now = 0) const {
    return opened_request_of(keys, form, content, SIZE_MAX, now).why;
  }
};

}  // namespace lethe::test
