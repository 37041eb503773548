// Arithmetics that round, on cores, as a person asks for them: where the processor has tiles or
// pairs of bf16, and where it hasn't.
#include <gtest/gtest.h>

#include "kernels/pairs_row.hpp"
#include "tests/e2e/hosts.hpp"
#include "tests/e2e/load.hpp"
#include "tests/e2e/private_path.hpp"
#include "tests/e2e/ranks.hpp"

namespace lethe {
namespace {

const std::string ember = std::string(places::source) + "/models/ember";

std::vector<std::string> words(const std::string& model, std::vector<std::string> more) {
  std::vector<std::string> all{"generate",
                               "--model",
                               model,
                               "--prompt",
                               "Hello, who are you?",
                               "--json",
                               "--max-tokens",
                               "24",
                               "--seed",
                               "3",
                               "--logprobs",
                               "2",
                               "-q"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

bool has(const std::string& arithmetic) {
  return runs_here(arithmetic == "tensor" ? amx_tensor : pairs_row());
}

class Arithmetic : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(By, Arithmetic,
                         testing::Values(std::string("tensor"), std::string("pairs")),
                         [](const auto& of) { return of.param; });

TEST(ArithmeticFlag, OfAnotherKindIsRefused) {
  auto refused = [](std::vector<std::string> more, const std::string& why) {
    auto ran = run_lethe(words(ember, std::move(more)));
    EXPECT_EQ(ran.exit_code, 1) << ran.out;
    EXPECT_NE(ran.err.find(why), std::string::npos) << ran.err;
  };
  refused({"--arithmetic", "fast"},
          "--arithmetic fast: there is none; there are: exact, tensor, pairs");
  refused({"--arithmetic", "tensor", "--isa", "reference"}, "leave out --isa");
  refused({"--isa", "amx_tensor"}, "--isa amx_tensor: there is none");
  refused({"--isa", "avx512bf16"}, "--isa avx512bf16: there is none");
  if (!has("tensor")) refused({"--arithmetic", "tensor"}, "has no tiles of bfloat16 (AMX)");
  if (!has("pairs")) refused({"--arithmetic", "pairs"}, "has no pairs of bfloat16 (AVX512_BF16)");
}

/// Ember in bf16: its answers are of other bits, and the same for any cut and chunk.
TEST_P(Arithmetic, IsTheSameInAnyCutAndChunk) {
  const std::string& name = GetParam();
  if (!has(name)) GTEST_SKIP() << "this machine has none";
  scratch_folder folder;
  const std::string model = folder / "bf16.gguf";
  auto made = run_lethe({"model", "convert", ember, model, "--type", "bf16"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  auto said = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--kv", "bf16"});
    auto ran = run_lethe(words(model, more));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran.out;
  };
  auto want = said({"--arithmetic", name});
  EXPECT_EQ(said({"--arithmetic", name, "--tensor", "2", "--chunk", "3"}), want);
  EXPECT_EQ(said({"--arithmetic", name, "--pipeline", "2", "--page-size", "5"}), want);
  EXPECT_NE(said({}), want) << "then nothing was rounded";
}

std::string cluster_file(const std::string& engines, const std::string& model) {
  return "name = \"tiles\"\nprofile = \"lab\"\n[model]\nname = \"tiny\"\npath = \"" + model +
         "\"\n[listen]\napi = \"127.0.0.1:0\"\n[batching]\nkv = \"bf16\"\nkv_memory = \"8 MiB\"\n"
         "running = 8\n[engines]\nthreads = 1\n" +
         engines;
}

TEST_P(Arithmetic, OfAClusterIsSaidAndDoesNotDependOnCompany) {
  const std::string& name = GetParam();
  const std::string tensor = "arithmetic = \"" + name + "\"\n";
  if (!has(name)) {
    scratch_folder folder;
    auto file = folder.write("c.toml", cluster_file(tensor, ember));
    auto checked = run_lethe({"config", "check", file});
    EXPECT_EQ(checked.exit_code, 1);
    EXPECT_NE(checked.err.find("engines.arithmetic"), std::string::npos) << checked.err;
    return;
  }
  auto status = [](const running_cluster& c) {
    return run_lethe({"status", "--cluster", c.file}).out;
  };
  std::vector<std::string> alone;
  {
    running_cluster c(cluster_file(tensor, ember));
    ASSERT_TRUE(c.tells("ready: 1 of 1")) << c.errors();
    EXPECT_NE(status(c).find("1x1 (" + name + " arithmetic)  "), std::string::npos) << status(c);
    alone = said_at(c.port("api"));
  }
  running_cluster c(cluster_file(tensor + "tensor = 2\nprocesses = \"ranks\"\n", ember));
  ASSERT_TRUE(c.tells("ready: 1 of 1")) << c.errors();
  load clients(c.port("api"), 2, 8);
  ASSERT_TRUE(eventually([&] { return clients.seen.whole > 1; }));
  EXPECT_EQ(said_at(c.port("api")), alone);
  clients.end();
  EXPECT_EQ(clients.seen.cut + clients.seen.other, 0u);
  running_cluster exact(cluster_file("", ember));
  ASSERT_TRUE(exact.tells("ready: 1 of 1")) << exact.errors();
  EXPECT_EQ(status(exact).find("arithmetic"), std::string::npos);
  EXPECT_NE(said_at(exact.port("api")), alone) << "then nothing was rounded";
}

}  // namespace
}  // namespace lethe
