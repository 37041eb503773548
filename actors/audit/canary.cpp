#include "actors/audit/canary.hpp"

#include <fmt/format.h>

#include "actors/audit/embedded_cluster.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/log/draw.hpp"
#include "runtime/serve/open_model.hpp"

namespace lethe::audit {

namespace {

/// A name of so many letters that no list has.
std::string drawn_word(size_t letters) {
  std::string word;
  for (size_t i = 0; i < letters; ++i) {
    constexpr std::string_view odd = "qxzvkjwbpf", even = "aeiouy";
    const auto& from = i % 2 == 0 ? odd : even;
    word += from[uniform_below(from.size(), fill_random)];
  }
  word[0] = char(word[0] - 'a' + 'A');
  return word;
}

}  // namespace

result<canary> canary::draw(const std::filesystem::path& model) {
  canary c;
  // Short ones lie in the string itself, on whatever stack that is; long ones in the heap.
  c.dog_ = drawn_word(13);
  c.cat_ = drawn_word(14);
  c.long_ = drawn_word(37);
  c.prompt_ =
      fmt::format("My dog is called {} and my cat {}. What is my dog called?", c.dog_, c.cat_);
  auto words = open_tokenizer(model);
  if (!words) return words.why();
  auto ids = words->encode(c.prompt_, {}, std::pmr::get_default_resource());
  if (!ids) return ids.why();
  if (ids->size() < 16) return fail("the prompt has only {} tokens", ids->size());
  c.needles_ = forms_of_ids({ids->begin(), ids->end()});
  for (const auto& word : {c.dog_, c.cat_, c.long_})
    for (auto& n : forms_of_word(word)) c.needles_.push_back(std::move(n));
  return c;
}

std::string canary::body(const std::string& more) const {
  return fmt::format(R"({{"model":"{}","messages":[{{"role":"system","content":"Be short."}},)"
                     R"({{"role":"user","content":"{}"}}]{}}})",
                     model_name, prompt_, more);
}

std::vector<std::string> canary::answered() const {
  const std::string schema = fmt::format(
      R"({{"type":"object","properties":{{"{0}":{{"type":"string","pattern":"^[a-z]+$"}},)"
      R"("{1}":{{"enum":["a","{1}"]}}}},"required":["{0}"]}})",
      cat_, long_);
  return {
      body(),
      body(R"(,"stream":true)"),
      body(R"(,"n":3,"temperature":1,"logprobs":true)"),
      body(fmt::format(R"(,"max_tokens":60,"ignore_eos":true,"stop":["{}","{}"])", cat_, long_)),
      body(fmt::format(R"(,"max_tokens":30,"response_format":{{"type":"json_schema",)"
                       R"("json_schema":{{"name":"a","schema":{}}}}})",
                       schema)),
      body(fmt::format(R"(,"max_tokens":8,"guided_regex":"({}|{})+")", cat_, long_)),
      body(fmt::format(R"(,"max_tokens":8,"tools":[{{"type":"function","function":{{"name":"f",)"
                       R"("description":"{}","parameters":{}}}}}])",
                       cat_, schema))};
}

std::vector<std::string> canary::refused() const {
  const auto schema = [this](const std::string& inner) {
    return body(fmt::format(R"(,"response_format":{{"type":"json_schema","json_schema":)"
                            R"({{"name":"a","schema":{{{}}}}}}})",
                            inner));
  };
  return {prompt_,
          body(R"(,"max_tokens":-1)"),
          body(fmt::format(",\"{}\":1", long_)),
          schema(fmt::format(R"("pattern":"({}")", cat_)),
          schema(fmt::format(R"("type":"{}")", long_)),
          body(fmt::format(R"(,"guided_regex":"((({}")", long_)),
          body(fmt::format(R"(,"stop":"\ud800{}")", cat_))};
}

std::string canary::endless() const {
  return body(R"(,"stream":true,"ignore_eos":true,"max_tokens":900)");
}

}  // namespace lethe::audit
