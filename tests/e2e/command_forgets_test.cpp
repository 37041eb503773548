// After an answer nothing of it is in the memory or the files of any process of the private path,
// however it ended. The controls are the same program without one of its fences.
#include <gtest/gtest.h>

#include "tests/e2e/private_path.hpp"
#include "tests/e2e/process_memory.hpp"
#include "tests/e2e/running_lethe.hpp"

namespace lethe {
namespace {

class Forgets : public PrivatePath {
 protected:
  void SetUp() override {
    tapped_ = false;
    batching_ = "running = 4\n";
    PrivatePath::SetUp();
    buy();
  }
  /// The text as ids, as `lethe tokenize` says them.
  static std::vector<uint64_t> ids_of(const std::string& text) {
    auto said =
        run_lethe({"tokenize", "--model", std::string(places::source) + "/models/ember"}, text);
    std::ranges::replace_if(
        said.out, [](char c) { return c < '0' || c > '9'; }, ' ');
    std::istringstream words(said.out);
    std::vector<uint64_t> ids;
    for (uint64_t id; words >> id;) ids.push_back(id);
    EXPECT_GE(ids.size(), 16u) << said.out << said.err;
    return ids;
  }
  std::vector<pid_t> everyone() const {
    std::vector<pid_t> all;
    for (const auto* part : {&*issuer_, &*relay_, &*gateway_})
      for (pid_t p : family_of(part->pid)) all.push_back(p);
    return all;
  }
  std::vector<trace_of> traces() const {
    auto needles = forms_of_ids(ids_of(prompt_));
    for (const auto& word : {dog_, cat_, long_})
      for (auto& n : forms_of_word(word)) needles.push_back(std::move(n));
    const needle_finder finder(std::move(needles));
    std::vector<trace_of> found;
    uint64_t bytes = 0;
    const auto all = everyone();
    EXPECT_GE(all.size(), 3u);
    stopped quiet(all);
    for (pid_t p : all) search_memory(p, finder, found, bytes);
    EXPECT_GT(bytes, uint64_t{100} << 20);
    for (const auto* part : {&*issuer_, &*relay_, &*gateway_})
      search_files(part->folder() / "", finder, found);
    search_files(folder_ / "", finder, found);
    return found;
  }
  std::string body(const std::string& more) const {
    return R"({"model":"ember","messages":[{"role":"system","content":"Be short."},)"
           R"({"role":"user","content":")" +
           prompt_ + "\"}]" + more + "}";
  }
  finished fetch(const std::string& body, const std::string& path = "/v1/chat/completions") const {
    return run_lethe({"fetch", trust_, path, "--data", body});
  }

  std::vector<std::string> answered() const;
  std::vector<std::string> refused() const;

  // Short ones lie in the string itself, on whatever stack that is; long ones in the heap.
  const std::string dog_ = "Qwaxolibrunt", cat_ = "Vyndaphorbesq",
                    long_ = "Brizzelconefrathwipporandumquolstevey";
  const std::string prompt_ =
      "My dog is called " + dog_ + " and my cat " + cat_ + ". What is my dog called?";
};

/// Of each kind that has code of its own: streams, choices, stop texts, forms, tools.
std::vector<std::string> Forgets::answered() const {
  const std::string schema = R"({"type":"object","properties":{")" + cat_ +
                             R"(":{"type":"string","pattern":"^[a-z]+$"},")" + long_ +
                             R"(":{"enum":["a",")" + long_ + R"("]}},"required":[")" + cat_ +
                             R"("]})";
  return {body(""),
          body(R"(,"stream":true)"),
          body(R"(,"n":3,"temperature":1,"logprobs":true)"),
          body(R"(,"max_tokens":60,"ignore_eos":true,"stop":[")" + cat_ + "\",\"" + long_ + "\"]"),
          body(R"(,"max_tokens":30,"response_format":{"type":"json_schema","json_schema":)"
               R"({"name":"a","schema":)" +
               schema + "}}"),
          body(R"(,"max_tokens":8,"guided_regex":"()" + cat_ + "|" + long_ + ")+\""),
          body(R"(,"max_tokens":8,"tools":[{"type":"function","function":{"name":"f",)"
               R"("description":")" +
               cat_ + R"(","parameters":)" + schema + "}}]")};
}

std::vector<std::string> Forgets::refused() const {
  return {prompt_,
          body(R"(,"max_tokens":-1)"),
          body(",\"" + long_ + "\":1"),
          body(R"(,"response_format":{"type":"json_schema","json_schema":{"name":"a",)"
               R"("schema":{"pattern":"()" +
               cat_ + "\"}}}"),
          body(R"(,"response_format":{"type":"json_schema","json_schema":{"name":"a",)"
               R"("schema":{"type":")" +
               long_ + "\"}}}"),
          body(R"(,"guided_regex":"(((")" + long_ + "\""),
          body(R"(,"stop":"\ud800)" + cat_ + "\"")};
}

TEST_F(Forgets, WhateverWasAskedAndAnswered) {
  for (const auto& asked : answered()) {
    auto said = fetch(asked);
    EXPECT_EQ(said.exit_code, 0) << asked << said.err << said.out;
    const auto left = traces();
    ASSERT_TRUE(left.empty()) << asked << "\n" << text_of(left);
  }
}

TEST_F(Forgets, WhateverWasRefused) {
  for (const auto& asked : refused()) {
    auto said = fetch(asked);
    EXPECT_NE(said.exit_code, 0) << said.out;
    const auto left = traces();
    ASSERT_TRUE(left.empty()) << asked << "\n" << text_of(left);
  }
  auto said = fetch(body(""), "/v1/" + cat_);
  EXPECT_NE(said.exit_code, 0) << said.out;
  EXPECT_TRUE(traces().empty());
}

TEST_F(Forgets, WhoLeavesInTheMiddle) {
  {
    running_lethe asking(
        {"fetch", trust_, "--data", body(R"(,"stream":true,"ignore_eos":true,"max_tokens":900)")});
    for (int i = 0; i < 500 && !has(asking.out(), "content"); ++i) ::usleep(10'000);
    EXPECT_TRUE(has(asking.out(), "content")) << asking.err();
  }  // killed; the cluster has yet to hear of it
  auto left = traces();
  for (int i = 0; i < 100 && !left.empty(); ++i) left = traces();
  EXPECT_TRUE(left.empty()) << text_of(left);
}

/// The controls. Each fence alone: without it there are traces.
struct Unfenced : Forgets, testing::WithParamInterface<const char*> {
  Unfenced() { program_ = std::string(places::unfenced) + "/" + GetParam(); }
};

TEST_P(Unfenced, LeavesTraces) {
  size_t left = 0;
  for (const auto& asked : {answered(), refused()})
    for (size_t i = 0; i < asked.size() && left == 0; ++i) {
      fetch(asked[i]);
      left = traces().size();
    }
  EXPECT_GT(left, 0u);
}

INSTANTIATE_TEST_SUITE_P(One, Unfenced,
                         testing::Values("lethe_wipes_nothing", "lethe_frees_as_it_is",
                                         "lethe_keeps_stacks"),
                         [](const auto& which) { return std::string(which.param).substr(6); });

}  // namespace
}  // namespace lethe
