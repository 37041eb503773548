// Ranks that are processes, of one host or of two: the bits of one rank.

#include "tests/e2e/rank/rank_processes.hpp"

namespace lethe::e2e {
namespace {

using testing::run_on;

constexpr const char* models[] = {"llama-tiny", "llama-tiny-f16", "llama-tiny-sharded",
                                  "qwen2-tiny", "qwen3-tiny",     "ember"};
constexpr cut cuts[] = {{2, 1}, {1, 2}, {2, 2}, {4, 1}};

std::string bits_of(const std::vector<testing::logit_rows>& all) {
  std::string bits;
  for (const auto& rows : all)
    for (const auto& row : rows) bits += as_text(std::as_bytes(std::span(row)));
  return bits;
}

class RankProcesses : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path_ = path_of(GetParam());
    if (path_.empty()) GTEST_SKIP() << "no shared vectors";
    model_ = open(path_);
    prompts_ = rank_prompts(model_->vocab());
    alone_ = bits_of(testing::run(model_->weights(), prompts_, {}));
  }
  void expect_bits_of_one_rank(const replica_terms& terms) {
    led r(*model_, terms);
    auto all =
        run_on(*r.leader, r.leader->depth(), model_->vocab(), prompts_, rank_manner(terms.ranks));
    EXPECT_TRUE(bits_of(all) == alone_);
    r.leader.reset();
    for (auto& other : r.others.all) EXPECT_EQ(other->ended_within(20s), 0) << other->why();
  }

  std::string path_;
  std::optional<opened> model_;
  std::vector<testing::prompt> prompts_;
  std::string alone_;  // the logits of one rank
};

INSTANTIATE_TEST_SUITE_P(Models, RankProcesses, ::testing::ValuesIn(models), [](const auto& p) {
  std::string name = p.param;
  std::erase(name, '-');
  return name;
});

TEST_P(RankProcesses, GiveTheBitsOfOneRank) {
  for (cut c : cuts)
    for (bool protected_link : {false, true}) {
      SCOPED_TRACE(text_of(c) + (protected_link ? " protected" : ""));
      expect_bits_of_one_rank(
          {.ranks = c, .model = path_, .timeout = 60s, .protected_link = protected_link});
    }
}

/// Ranks by turns on two hosts: sums go over the network where tensor is two or more, activations
/// where there are only stages. A rank can only listen at an address of the host that it is on.
TEST_P(RankProcesses, OfTwoHostsGiveTheBitsOfOneRank) {
  small_network network;
  if (auto why = network.begin(); !why.empty()) GTEST_SKIP() << why;
  const net_host north = network.add(), south = network.add();
  if (north.address.empty() || south.address.empty())
    GTEST_SKIP() << "no host can be made on a network";
  for (cut c : cuts) {
    SCOPED_TRACE(text_of(c));
    north.on([&] {
      expect_bits_of_one_rank(
          {.ranks = c, .model = path_, .timeout = 60s, .hosts = {&north, &south}});
    });
  }
}

TEST(RankModels, AreAllOfTheVectors) {
  if (vectors().empty()) GTEST_SKIP() << "no shared vectors";
  for (const auto& at : std::filesystem::directory_iterator(vectors() / "models"))
    EXPECT_TRUE(std::ranges::count(models, at.path().filename().string())) << at.path();
}

}  // namespace
}  // namespace lethe::e2e
