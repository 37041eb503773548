#include "runtime/cluster/cluster_plan.hpp"

#include <gtest/gtest.h>

namespace lethe {
namespace {

constexpr machine eight_cores{.cores = 8, .memory = uint64_t{32} << 30};

cluster_config config(const std::string& more = {}) {
  auto c = cluster_config::parse("profile = \"lab\"\n[model]\npath = \"/m\"\n" + more, "c.toml");
  EXPECT_TRUE(c.problems().empty()) << c.problems().front();
  return c;
}

cluster_plan plan_of(const std::string& more = {}) {
  auto made = cluster_plan::make(config(more).get(), eight_cores);
  if (!made) ADD_FAILURE() << made.why().text;
  return *std::move(made);
}

std::string changes_text(const cluster_plan& p, const cluster_config& next) {
  auto lines = p.changes(next.get());
  if (!lines) return "refused: " + lines.why().text;
  return fmt::format("{}", fmt::join(*lines, "; "));
}

constexpr const char* two_hosts =
    "[[hosts]]\nname = \"a\"\nport = 7000\ncores = 4\n[[hosts]]\nname = \"b\"\nport = 7000\n"
    "cores = 4\n[engines]\nthreads = 2\nplacement = \"spread\"\n";

TEST(ClusterPlan, GivesEachEngineAPlace) {
  auto p = plan_of(std::string(two_hosts) + "count = 3\n");
  EXPECT_EQ(p.places(), (std::vector<engine_place>{{"a", 1}, {"b", 1}, {"a", 1}}));
  EXPECT_TRUE(p.knows_host("b"));
  EXPECT_FALSE(p.knows_host("c"));
}

TEST(ClusterPlan, PlacesRanksOnSeveralHostsIfTheyAreProcesses) {
  auto p = plan_of(std::string(two_hosts) + "tensor = 4\nprocesses = \"ranks\"\n");
  const std::vector<std::string> ranks{"a", "a", "b", "b"};
  ASSERT_EQ(p.places(), (std::vector<engine_place>{{"a", 1, ranks}}));
  EXPECT_EQ(p.places()[0].hosts(), (std::vector<std::string>{"a", "b"}));
  capnp::MallocMessageBuilder message;
  auto spec = message.initRoot<schema::EngineSpec>();
  p.describe(spec, 0, 1, p.places()[0], "b");
  ASSERT_EQ(spec.getPlaces().size(), 4u);
  for (uint32_t r = 0; r < 4; ++r) {
    EXPECT_EQ(std::string(spec.getPlaces()[r].getHost().cStr()), ranks[r]);
    EXPECT_EQ(std::string(spec.getPlaces()[r].getAddress().cStr()), "127.0.0.1");
  }
}

TEST(ClusterPlan, RefusesAnEngineAcrossHostsInOneProcess) {
  auto across =
      cluster_plan::make(config(std::string(two_hosts) + "tensor = 4\n").get(), eight_cores);
  ASSERT_FALSE(across);
  EXPECT_NE(across.why().text.find("processes = \"ranks\""), std::string::npos)
      << across.why().text;
}

std::string one_device(const std::string& engines, const std::string& more = {}) {
  return "[[hosts]]\nname = \"a\"\ndevices = [\"cuda:3\", \"cuda:1\"]\n" + more +
         "device_memory = \"8 GiB\"\n[engines]\n" + engines;
}

TEST(ClusterPlan, TellsRanksTheirDevicesWhichWantProcesses) {
  auto made = cluster_plan::make(config(one_device("tensor = 2\n")).get(), eight_cores);
  ASSERT_FALSE(made);
  EXPECT_NE(made.why().text.find("engine 0 is on cuda:3 of a, which wants a process: [engines] "
                                 "processes = \"ranks\""),
            std::string::npos)
      << made.why().text;
  auto p = plan_of(one_device("tensor = 2\nprocesses = \"ranks\"\n"));
  ASSERT_EQ(p.places().size(), 1u);
  const engine_place place = p.places()[0];
  EXPECT_EQ(place.devices, (std::vector<std::string>{"cuda:3", "cuda:1"}));
  EXPECT_TRUE(place.ranks.empty());
  capnp::MallocMessageBuilder message;
  auto spec = message.initRoot<schema::EngineSpec>();
  p.describe(spec, 0, 1, place, "a");
  EXPECT_EQ(std::string(spec.getPlaces()[0].getDevice().cStr()), "cuda:3");
  EXPECT_EQ(std::string(spec.getPlaces()[1].getDevice().cStr()), "cuda:1");
  EXPECT_EQ(spec.getThreads(), 1u);
}

/// Sealed is the default, and NCCL can't.
TEST(ClusterPlan, RefusesDevicesOfSeveralHostsWhoseLinksAreSealed) {
  auto across = [](const std::string& more) {
    std::string hosts;
    for (const char* name : {"a", "b"})
      hosts += fmt::format(
          "[[hosts]]\nname = \"{}\"\nport = 7001\ndevices = [\"cuda:0\"]\ndevice_memory = \"8 "
          "GiB\"\n",
          name);
    return config(hosts + "[engines]\nprocesses = \"ranks\"\ntensor = 2\n" + more);
  };
  auto sealed = cluster_plan::make(across("").get(), eight_cores);
  ASSERT_FALSE(sealed);
  EXPECT_NE(sealed.why().text.find("engine 0: NCCL seals nothing that goes from a to b"),
            std::string::npos)
      << sealed.why().text;
  auto clear = cluster_plan::make(across("links = \"clear\"\n").get(), eight_cores);
  EXPECT_TRUE(clear) << clear.why().text;
}

TEST(ClusterPlan, SaysThatSuccessorsOnDevicesComeLater) {
  const std::string ranks = "processes = \"ranks\"\n";
  auto p = plan_of(one_device(ranks));
  EXPECT_NE(changes_text(p, config(one_device(ranks + "[batching]\nrunning = 7\n")))
                .find("one after the other: each leaves its device before its successor loads"),
            std::string::npos);
}

/// Whoever's word it is that reaches a running cluster, the policy holds there, too.
TEST(ClusterPlan, TakesWhatThePolicyTakesAndTellsEnginesOfIt) {
  auto p = plan_of();
  auto named = [](const std::string& name, const char* profile) {
    return cluster_config::parse(fmt::format("profile = \"{}\"\noptimizations = [\"{}\"]\n"
                                             "[model]\npath = \"/m\"\n",
                                             profile, name),
                                 "c.toml");
  };
  auto next = named("prefix-cache", "lab");
  EXPECT_EQ(changes_text(p, next),
            "optimizations[0]: (none) -> \"prefix-cache\"; every engine is replaced: its "
            "successor is ready before it leaves");
  ASSERT_TRUE(p.apply(next.get()));
  capnp::MallocMessageBuilder message;
  auto spec = message.initRoot<schema::EngineSpec>();
  p.describe(spec, 0, 1, {.host = "local"});
  ASSERT_EQ(spec.getOptimizations().size(), 1u);
  EXPECT_EQ(std::string(spec.getOptimizations()[0].cStr()), "prefix-cache");
  auto refused = changes_text(p, named("disk-kv", "lab"));
  EXPECT_EQ(refused.find("refused: optimizations[0]: disk-kv is not built"), 0u) << refused;
  auto made = cluster_plan::make(named("prefix-cache", "strict").get(), eight_cores);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.why().text.find("optimizations[0]: prefix-cache is refused"), 0u);
}

TEST(ClusterPlan, ScalesWithinBoundsAndChangesNothingWhenRefused) {
  auto p = plan_of();
  EXPECT_TRUE(p.scale(3));
  EXPECT_EQ(p.places().size(), 3u);
  EXPECT_TRUE(p.scale(256));
  EXPECT_EQ(p.engines(), 256u);
  for (uint16_t wrong : {uint16_t{0}, uint16_t{257}, uint16_t{65535}}) {
    auto refused = p.scale(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.why().text.find("engines.count"), std::string::npos) << refused.why().text;
    EXPECT_EQ(p.engines(), 256u);
  }
  auto tight = plan_of(std::string(two_hosts) + "count = 2\n");
  EXPECT_FALSE(tight.scale(5));  // two cores each, eight in all
  EXPECT_EQ(tight.places().size(), 2u);
}

TEST(ClusterPlan, ADrainedEnginesPlaceIsGoneUntilSomeoneScales) {
  auto p = plan_of(std::string(two_hosts) + "count = 3\n");
  p.keep_only({{"a", 1}, {"a", 1}});
  EXPECT_EQ(p.engines(), 2u);
  EXPECT_EQ(p.places(), (std::vector<engine_place>{{"a", 1}, {"a", 1}}));
  EXPECT_TRUE(p.scale(2));
  EXPECT_EQ(p.places(), (std::vector<engine_place>{{"a", 1}, {"b", 1}}));
}

TEST(ClusterPlan, TellsWhatAFileChanges) {
  auto p = plan_of();
  EXPECT_EQ(changes_text(p, config()), "");
  EXPECT_EQ(changes_text(p, config("[engines]\ncount = 2\n")), "engines.count: 1 -> 2");
  auto batching = changes_text(p, config("[batching]\nrunning = 8\n"));
  EXPECT_TRUE(batching.starts_with("batching.running: 64 -> 8; every engine is replaced"))
      << batching;
  auto fixed = changes_text(p, config("[listen]\napi = \"127.0.0.1:1\"\n"));
  EXPECT_TRUE(fixed.starts_with("refused: listen.api")) << fixed;
  EXPECT_NE(fixed.find("lethe down, then lethe up"), std::string::npos);
  auto shape = changes_text(p, config("[shape]\nchunk = 512\n"));
  EXPECT_TRUE(shape.starts_with("refused: shape.chunk: ")) << shape;
}

TEST(ClusterPlan, ReplacesEnginesOnlyForWhatTheyFeel) {
  auto p = plan_of();
  ASSERT_TRUE(p.apply(config("[engines]\ncount = 2\n").get()));
  EXPECT_EQ(p.places(), (std::vector<engine_place>{{"local", 1}, {"local", 1}}));
  ASSERT_TRUE(p.apply(config("[engines]\ncount = 2\n[batching]\nrunning = 8\n").get()));
  EXPECT_EQ(p.places(), (std::vector<engine_place>{{"local", 2}, {"local", 2}}));
}

// The operator's command checks a file, but not every message is the command's.
TEST(ClusterPlan, AMessageThatNoFileCouldBeIsRefused) {
  auto p = plan_of();
  auto refusal = [&p](auto edit) {
    auto c = config();
    edit(c.edit());
    EXPECT_FALSE(p.apply(c.get()));
    return changes_text(p, c);
  };
  auto ranks = refusal([](schema::Config::Builder c) { c.getEngines().setTensor(0); });
  EXPECT_NE(ranks.find("engines.tensor: 0 is out of range; 1 to 64"), ranks.npos) << ranks;
  auto many = refusal([](schema::Config::Builder c) { c.getEngines().setPipeline(65535); });
  EXPECT_NE(many.find("engines.pipeline"), many.npos) << many;
  auto word = refusal([](schema::Config::Builder c) { c.getBatching().setKv(schema::KvType(9)); });
  EXPECT_NE(word.find("batching.kv"), word.npos) << word;
  auto list = refusal([](schema::Config::Builder c) { c.getEngines().initRanks(4097); });
  EXPECT_NE(list.find("4097 elements"), list.npos) << list;
  EXPECT_EQ(p.engines(), 1u);
  EXPECT_EQ(p.places().front().version, 1u);
}

TEST(ClusterPlan, AnEngineIsToldAllThatItsFileSays) {
  auto p = plan_of(std::string(two_hosts) + "count = 2\n[batching]\nrunning = 8\n");
  capnp::MallocMessageBuilder message;
  auto spec = message.initRoot<schema::EngineSpec>();
  p.describe(spec, 5, 9, {.host = "b"});
  EXPECT_EQ(spec.getSlot(), 5u);
  EXPECT_EQ(spec.getEpoch(), 9u);
  EXPECT_EQ(spec.getThreads(), 2u);
  EXPECT_EQ(spec.getBatching().getRunning(), 8u);
  EXPECT_EQ(std::string(spec.getModel().getPath().cStr()), "/m");
  EXPECT_EQ(spec.getProfile(), schema::Profile::LAB);
}

}  // namespace
}  // namespace lethe
