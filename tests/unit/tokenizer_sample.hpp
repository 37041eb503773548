#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/tokenizer/stream_decoder.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

/// Small tokenizers, written by hand, for the tests.
namespace lethe::sample {

using ids = std::vector<uint32_t>;
inline std::pmr::memory_resource* heap() { return std::pmr::new_delete_resource(); }

inline tokenizer made(std::string_view json, std::string_view config = {}) {
  auto t = tokenizer::from_json(json, config);
  if (!t) ADD_FAILURE() << t.why().text;
  if (!t) std::abort();
  return *std::move(t);
}

inline std::string refusal(std::string_view json, std::string_view config = {}) {
  auto t = tokenizer::from_json(json, config);
  return t ? "" : t.why().text;
}

inline ids encoded(const tokenizer& t, std::string_view text, encode_options o = {}) {
  auto out = t.encode(text, o, heap());
  EXPECT_TRUE(out);
  return out ? ids(out->begin(), out->end()) : ids();
}

inline std::string decoded(const tokenizer& t, const ids& tokens, bool skip_special = false) {
  return std::string(t.decode(tokens, skip_special, heap()));
}

/// A tokenizer.json with a word list as its model: each word of `vocab` one token, in order.
struct words {
  std::vector<std::string> vocab = {"<unk>"};
  std::string normalizer = "null", pre_tokenizer = "null", post_processor = "null",
              decoder = "null", added_tokens = "[]";

  std::string json() const {
    std::string entries;
    for (size_t i = 0; i < vocab.size(); i++)
      entries += (i ? ",\"" : "\"") + vocab[i] + "\":" + std::to_string(i);
    return R"({"added_tokens":)" + added_tokens + R"(,"normalizer":)" + normalizer +
           R"(,"pre_tokenizer":)" + pre_tokenizer + R"(,"post_processor":)" + post_processor +
           R"(,"decoder":)" + decoder +
           R"(,"model":{"type":"WordLevel","unk_token":"<unk>","vocab":{)" + entries + "}}}";
  }
};

}  // namespace lethe::sample
