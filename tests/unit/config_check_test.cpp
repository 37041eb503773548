// What a cluster file would start, and what can't work.
#include "tests/places.hpp"
#include "tests/unit/config_read.hpp"

namespace lethe {
namespace {

using testing::check;
using testing::model_line;
using testing::problems;
using testing::refuses;
using testing::tiny;

std::string two_hosts(const std::string& first, const std::string& second) {
  return "[[hosts]]\nname=\"a\"\nport=7001\n" + first + "\n[[hosts]]\nname=\"b\"\nport=7002\n" +
         second + "\n[tls]\nfolder=\"keys\"\n";
}

std::string places(const checked_config& c) {
  std::string all;
  for (const auto& r : c.layout.ranks)
    all +=
        fmt::format("{}.{}.{}@{} ", r.engine, r.stage, r.tensor_rank, c.layout.hosts[r.host].name);
  return all;
}

TEST(ConfigCheck, OneProcessNeedsNothingButAModel) {
  auto c = check(model_line);
  ASSERT_TRUE(c.good()) << problems(c);
  EXPECT_EQ(places(c), "0.0.0@local ");
  EXPECT_EQ(c.layout.ranks[0].threads, 8u);
  ASSERT_EQ(c.needs.size(), 1u);
  EXPECT_EQ(c.needs[0].weights, c.weight_bytes);
  EXPECT_EQ(c.needs[0].kv, 256u << 20);
}

TEST(ConfigCheck, SharesCoresAndWeightsOut) {
  auto c = check(model_line + "[engines]\ncount=2\ntensor=2\npipeline=2\n");
  ASSERT_TRUE(c.good()) << problems(c);
  EXPECT_EQ(c.layout.ranks.size(), 8u);
  uint64_t weights = 0;
  for (size_t i = 0; i < 4; ++i) weights += c.needs[i].weights;
  // A cut adds nothing but the head that the tied embedding serves on the last stage, too.
  EXPECT_NEAR(double(weights), double(c.model->weight_bytes), 0.5 * double(c.model->weight_bytes));
  for (const auto& r : c.layout.ranks) EXPECT_EQ(r.threads, 1u);
  EXPECT_TRUE(c.layout.notes.empty());
}

/// Of a host that has room for so many copies of the model, and for its keys and values.
bool fits(double copies, const std::string& engines) {
  auto whole = check(model_line);
  auto memory = uint64_t(copies * double(whole.model->weight_bytes)) + 4 * whole.needs[0].kv;
  return check(model_line + "[[hosts]]\nname=\"a\"\nmemory=\"" + std::to_string(memory) +
               "\"\n[batching]\nkv_memory=\"256 MiB\"\n[engines]\n" + engines)
      .good();
}

TEST(ConfigCheck, EnginesOfOneProcessShareTheirWeightsOthersHaveTheirOwn) {
  for (const char* cut : {"count=4\n", "count=2\ntensor=2\n"}) {
    double separate = cut == std::string("count=4\n") ? 4 : 2;
    EXPECT_TRUE(fits(1.01, cut));
    EXPECT_FALSE(fits(0.99, cut));
    std::string alone = cut + std::string("processes=\"separate\"\n");
    EXPECT_TRUE(fits(separate + 0.01, alone));
    EXPECT_FALSE(fits(separate - 0.01, alone));
  }
}

TEST(ConfigCheck, AHostHoldsOfAnEngineWhatItsRanksRead) {
  auto c = check(model_line + "[engines]\nprocesses=\"ranks\"\npipeline=2\nplacement=\"exact\"\n" +
                 "ranks=[\"a\",\"b\"]\n" + two_hosts("", ""));
  ASSERT_TRUE(c.good()) << problems(c);
  auto own = [&](size_t rank) { return c.needs[rank].weights + c.needs[rank].kv; };
  auto with = [&](uint64_t memory) {
    return check(model_line + "[engines]\nprocesses=\"ranks\"\npipeline=2\nplacement=\"exact\"\n" +
                 "ranks=[\"a\",\"b\"]\n" +
                 two_hosts("memory=\"" + std::to_string(memory) + "\"", ""))
        .good();
  };
  EXPECT_LT(c.needs[0].weights, c.model->weight_bytes);
  EXPECT_TRUE(with(own(0)));
  EXPECT_FALSE(with(own(0) - 1));
}

TEST(ConfigCheck, MoreRanksThanCoresIsANoteHereAndARefusalWhereCoresAreStated) {
  std::string many = model_line + "[engines]\ncount=3\ntensor=2\npipeline=2\n";
  auto c = check(many);
  EXPECT_TRUE(c.good()) << problems(c);
  ASSERT_EQ(c.layout.notes.size(), 1u);
  EXPECT_NE(c.layout.notes[0].find("12 threads of 12 ranks share 8 cores on local"),
            std::string::npos);
  refuses(many + "[[hosts]]\nname=\"a\"\ncores=8\n", {"c.toml:4: engines.count: too few devices"});
}

TEST(ConfigCheck, PackedFillsAndSpreadGoesRound) {
  std::string hosts = two_hosts("cores=4", "cores=4");
  std::string cut = "[engines]\ncount=3\ntensor=2\n";
  EXPECT_EQ(places(check(model_line + cut + hosts)),
            "0.0.0@a 0.0.1@a 1.0.0@a 1.0.1@a 2.0.0@b 2.0.1@b ");
  EXPECT_EQ(places(check(model_line + cut + "placement=\"spread\"\n" + hosts)),
            "0.0.0@a 0.0.1@a 1.0.0@b 1.0.1@b 2.0.0@a 2.0.1@a ");
}

TEST(ConfigCheck, AnEngineLargerThanAnyHostGoesAcross) {
  auto c =
      check(model_line + "[engines]\ntensor=2\npipeline=2\n" + two_hosts("cores=3", "cores=3"));
  ASSERT_TRUE(c.good()) << problems(c);
  EXPECT_EQ(places(c), "0.0.0@a 0.0.1@a 0.1.0@a 0.1.1@b ");
}

const std::string two_devices = "devices=[\"cuda:0\",\"cuda:1\"]\ndevice_memory=\"2 GiB\"";

TEST(ConfigCheck, ExactTakesRanksAsListed) {
  std::string cut = "[engines]\ntensor=2\nplacement=\"exact\"\nranks=";
  std::string hosts = two_hosts(two_devices, two_devices);
  auto c = check(model_line + cut + "[\"b:cuda:1\",\"a:cuda:0\"]\n" + hosts);
  ASSERT_TRUE(c.good()) << problems(c);
  EXPECT_EQ(places(c), "0.0.0@b 0.0.1@a ");
  EXPECT_EQ(c.layout.ranks[0].device, "cuda:1");
  EXPECT_EQ(c.layout.ranks[0].threads, 0u);
  auto refused = [&](const std::string& ranks, const std::string& why) {
    refuses(model_line + cut + ranks + "\n" + hosts, {why});
  };
  refused("[\"b:cuda:1\"]", "lists 1 ranks");
  refused("[\"b:cuda:1\",\"c\"]", "engines.ranks[1]: there is no host \"c\"");
  refused("[\"b:cuda:1\",\"b:cuda:2\"]", "has no device \"cuda:2\"; it has cuda:0, cuda:1");
  refused("[\"b:cuda:1\",\"b:cuda:1\"]", "cuda:1 of host b is given to two ranks");
  refused("[\"b:cuda:1\",\"a\"]", "engine 0 has ranks on b:cuda:1 and on a's cores");
}

TEST(ConfigCheck, EnginesOnDevicesAndOnCoresMayLieOnOneHost) {
  auto c = check(model_line + "[engines]\ncount=2\nplacement=\"exact\"\n" +
                 "ranks=[\"b:cuda:1\",\"b\"]\n" + two_hosts("", "cores=4\n" + two_devices));
  ASSERT_TRUE(c.good()) << problems(c);
  EXPECT_TRUE(c.layout.ranks[0].on_device());
  EXPECT_GT(c.needs[0].steps, 0u);
  EXPECT_EQ(c.needs[0].context, device_context_bytes);
  EXPECT_EQ(c.layout.ranks[1].threads, 4u);
  EXPECT_EQ(c.needs[1].all(), c.needs[1].weights + c.needs[1].kv);
}

TEST(ConfigCheck, TensorArithmeticTakesDevicesOrCoresWithTiles) {
  std::string tensor = model_line + "[engines]\narithmetic=\"tensor\"\n";
  std::string on_devices = two_hosts(two_devices, two_devices);
  auto c = check(tensor + on_devices);
  ASSERT_TRUE(c.good()) << problems(c);
  ASSERT_EQ(c.layout.notes.size(), 1u);
  EXPECT_NE(c.layout.notes[0].find("by the rounding of bfloat16"), std::string::npos);
  EXPECT_TRUE(check(model_line + on_devices).layout.notes.empty());
  refuses(tensor, {"engines.arithmetic: \"tensor\" takes devices, or cores with tiles",
                   "engine 0 is on the cores of "});
  machine with_tiles = testing::eight_cores;
  with_tiles.tensor_arithmetic = true;
  auto tiled = check(tensor, with_tiles);
  ASSERT_TRUE(tiled.good()) << problems(tiled);
  ASSERT_EQ(tiled.layout.notes.size(), 2u);
  EXPECT_EQ(tiled.layout.notes[0], c.layout.notes[0]);
  EXPECT_NE(tiled.layout.notes[1].find("changes nothing here"), std::string::npos);
  auto rounds = check(tensor + "[batching]\nkv=\"bf16\"\n", with_tiles);
  EXPECT_EQ(rounds.layout.notes, c.layout.notes) << problems(rounds);
  // Of another machine's cores the file is believed.
  std::string on_b = tensor + "placement=\"exact\"\nranks=[\"b\"]\n";
  std::string elsewhere = "cores=4\naddress=\"192.0.2.7\"\n";
  auto believed = check(on_b + two_hosts("", elsewhere));
  EXPECT_TRUE(believed.good()) << problems(believed);
  refuses(on_b + two_hosts("", "cores=4\n"), {"engine 0 is on the cores of b"});
  refuses(tensor + "count=2\nplacement=\"exact\"\nranks=[\"b:cuda:1\",\"b\"]\n" +
              two_hosts("", elsewhere + two_devices),
          {"other bits on devices than on cores"});
  refuses(model_line + "[engines]\narithmetic=\"fast\"\n" + on_devices, {"arithmetic"});
}

TEST(ConfigCheck, ArithmeticByPairsTakesCoresThatHaveThem) {
  std::string pairs = model_line + "[batching]\nkv=\"bf16\"\n[engines]\narithmetic=\"pairs\"\n";
  machine here = testing::eight_cores;
  here.tensor_arithmetic = true;
  auto without = check(pairs, here);
  EXPECT_NE(problems(without).find("\"pairs\" takes cores with pairs of bfloat16"),
            std::string::npos)
      << problems(without);
  here.pairs_arithmetic = true, here.tensor_arithmetic = false;
  auto with = check(pairs, here);
  ASSERT_TRUE(with.good()) << problems(with);
  ASSERT_EQ(with.layout.notes.size(), 1u);
  EXPECT_NE(with.layout.notes[0].find("by the rounding of bfloat16"), std::string::npos);
  auto on_devices = check(pairs + two_hosts(two_devices, two_devices), here);
  EXPECT_NE(problems(on_devices).find("\"pairs\" is for cores, and an engine is on a device"),
            std::string::npos)
      << problems(on_devices);
}

TEST(ConfigCheck, EveryDeviceTakesOneRankAndNotMoreThanItHolds) {
  std::string host = "[[hosts]]\nname=\"a\"\ndevices=[\"cuda:2\",\"cuda:0\"]\ndevice_memory=";
  std::string tensor = model_line + "[engines]\ntensor=2\n";
  auto c = check(tensor + host + "\"2 GiB\"\n");
  ASSERT_TRUE(c.good()) << problems(c);
  EXPECT_EQ(c.layout.ranks[0].device, "cuda:2");
  EXPECT_EQ(c.layout.ranks[1].device, "cuda:0");
  refuses(model_line + "[engines]\ntensor=2\npipeline=2\n" + host + "\"2 GiB\"\n",
          {"too few devices", "need 4"});
  auto with = [&](uint64_t bytes) { return check(tensor + host + std::to_string(bytes) + "\n"); };
  EXPECT_TRUE(with(c.needs[0].all()).good());
  EXPECT_NE(problems(with(c.needs[0].all() - 1)).find("too large: a rank needs"),
            std::string::npos);
}

TEST(ConfigCheck, DevicesAreNamedAsCudaCountsThem) {
  auto host = [](const std::string& devices,
                 const std::string& more = "device_memory=\"2 GiB\"\n") {
    return model_line + "[[hosts]]\nname=\"a\"\ndevices=[" + devices + "]\n" + more;
  };
  EXPECT_TRUE(check(host("\"cuda:0\",\"cuda:63\"")).good());
  for (const char* bad : {"gpu-0", "cuda:", "cuda:-1", "cuda:01", "cuda:1x", "cuda:1000", "0"})
    refuses(host("\"" + std::string(bad) + "\""), {"hosts[0].devices[0]: must be cuda:0"});
  refuses(host("\"cuda:1\",\"cuda:1\""), {"hosts[0].devices[1]: cuda:1 is listed twice"});
  refuses(host("\"cuda:0\"", ""), {"say device_memory"});
}

TEST(ConfigCheck, OfADevicesRankTheHostHoldsOnlyWhatItsWeightsGoThrough) {
  auto with = [](uint64_t memory, const std::string& engines = {}) {
    return check(model_line + "[engines]\nprocesses=\"ranks\"\ntensor=2\n" + engines +
                 "[[hosts]]\nname=\"a\"\ncores=4\n" + two_devices +
                 "\nmemory=" + std::to_string(memory) + "\n");
  };
  const uint64_t pieces = 2 * (uint64_t{32} << 20);
  EXPECT_TRUE(with(pieces).good()) << "weights, keys and values are on the devices";
  EXPECT_NE(problems(with(pieces - 1)).find("too large: 0 bytes of weights, 64.0 MiB to load"),
            std::string::npos)
      << problems(with(pieces - 1));
  // Beside an engine on its cores.
  const std::string both =
      "count=2\nplacement=\"exact\"\nranks=[\"a:cuda:0\",\"a:cuda:1\",\"a\",\"a\"]\n";
  auto c = with(uint64_t{4} << 30, both);
  ASSERT_TRUE(c.good()) << problems(c);
  const uint64_t cores = c.weight_bytes + c.needs[2].kv + c.needs[3].kv;
  EXPECT_TRUE(with(pieces + cores, both).good());
  EXPECT_NE(problems(with(pieces + cores - 1, both)).find("too large"), std::string::npos);
}

TEST(ConfigCheck, AModelLargerThanTheHostIsRefused) {
  std::string host = "[[hosts]]\nname=\"a\"\nmemory=\"257 MiB\"\n";
  EXPECT_TRUE(check(model_line + host).good());
  refuses(model_line + "[engines]\ncount=2\n" + host, {"model.path: too large", "fewer engines"});
}

TEST(ConfigCheck, ACutThatDoesNotFitTheModelIsRefusedAtItsLine) {
  refuses(model_line + "[engines]\ntensor=3\n", {"c.toml:4: engines.tensor: ", "heads"});
  refuses(model_line + "[engines]\npipeline=3\n", {"c.toml:4: engines.pipeline: ", "layers"});
  refuses(model_line + "context = 1000000\n", {"c.toml:3: model.context"});
  refuses(model_line + "quantize = \"q9\"\n", {"c.toml:3: model.quantize", "q8_0"});
}

TEST(ConfigCheck, AModelThatIsNotHereIsANoteWhereHostsAreNamed) {
  refuses("[model]\npath=\"far\"\nquantize=\"q9\"\n[[hosts]]\nname=\"a\"\n",
          {"c.toml:3: model.quantize", "q8_0"});
  auto c = check("[model]\npath=\"far\"\n[[hosts]]\nname=\"a\"\n");
  EXPECT_TRUE(c.good()) << problems(c);
  ASSERT_EQ(c.layout.notes.size(), 1u);
  EXPECT_FALSE(check("[model]\npath=\"far\"\n").good());
}

TEST(ConfigCheck, TwoHostsNeedKeysPortsAndNames) {
  std::string pair = "[[hosts]]\nname=\"a\"\n[[hosts]]\nname=\"a\"\n";
  refuses(model_line + pair,
          {"hosts[1].name: \"a\" is taken", "hosts[0].port: is missing", "tls.folder: is missing"});
}

TEST(ConfigCheck, AHostsNameCanBePartOfAPath) {
  auto named = [](const std::string& name) {
    return check(model_line + "[[hosts]]\nname=\"" + name + "\"\n");
  };
  for (const char* bad : {"", "..", "a/b", "a.b", "-a", "a-", "a b", "\u00e9"})
    EXPECT_FALSE(named(bad).good()) << bad;
  EXPECT_TRUE(named(std::string(63, 'a')).good());
  EXPECT_FALSE(named(std::string(64, 'a')).good());
  EXPECT_TRUE(named("gpu-0").good());
}

TEST(ConfigCheck, WhatCarriesPromptsInTheClearStaysInTheLabAndOnLoopback) {
  std::string api = "[listen]\napi=\"127.0.0.1:8080\"\n";
  EXPECT_TRUE(check("profile=\"lab\"\n" + model_line + api).good());
  refuses(model_line + api, {"listen.api", "lab"});
  refuses("profile=\"session\"\n" + model_line + api, {"listen.api", "lab"});
  refuses("profile=\"lab\"\n" + model_line + "[listen]\napi=\"0.0.0.0:8080\"\n", {"loopback only"});
  EXPECT_TRUE(check("profile=\"lab\"\n" + model_line + "[listen]\napi=\"[::1]:0\"\n").good());
  for (const char* none : {"8080", "localhost:8080", "127.0.0.1:", "127.0.0.1:70000", "[::1:80"})
    refuses("profile=\"lab\"\n" + model_line + "[listen]\napi=\"" + none + "\"\n",
            {"no ADDRESS:PORT"});
}

TEST(ConfigCheck, NoTwoListenersTakeOnePort) {
  auto lab = [](const std::string& more) { return "profile=\"lab\"\n" + model_line + more; };
  auto both = [&](const std::string& api, const std::string& metrics) {
    return lab("[listen]\napi=\"" + api + "\"\nmetrics=\"" + metrics + "\"\n");
  };
  refuses(both("127.0.0.1:8080", "127.0.0.1:8080"),
          {"listen.metrics: 127.0.0.1:8080 is taken by listen.api"});
  refuses(both("127.0.0.1:8080", "0.0.0.0:8080"), {"0.0.0.0:8080 is taken by listen.api"});
  refuses(both("[::1]:8080", "[0::0:1]:8080"), {"taken by listen.api"});
  refuses(both("[::1]:8080", "[::]:8080"), {"taken by listen.api"});
  EXPECT_TRUE(check(both("127.0.0.1:8080", "127.0.0.2:8080")).good());
  EXPECT_TRUE(check(both("127.0.0.1:8080", "[::]:8080")).good());
  EXPECT_TRUE(check(both("127.0.0.1:0", "127.0.0.1:0")).good());

  std::string metrics = "[listen]\nmetrics=\"0.0.0.0:7001\"\n";
  refuses(model_line + two_hosts("", "") + metrics, {"listen.metrics", "taken by hosts[0].port"});
  refuses(model_line + two_hosts("address=\"north\"", "") + metrics, {"taken by hosts[0].port"});
  std::string here = "[listen]\nmetrics=\"127.0.0.1:7002\"\n";
  EXPECT_TRUE(check(model_line + two_hosts("", "") + here).good()) << "only the first listens";
  refuses(model_line + "[[hosts]]\nname=\"a\"\nport=7\n[[hosts]]\nname=\"b\"\nport=7\n" +
              "[tls]\nfolder=\"keys\"\n",
          {"hosts[1].port: 127.0.0.1:7 is taken by hosts[0].port"});
}

TEST(ConfigCheck, KeysOfClientsAreThereWhereTheFileIsForThisMachine) {
  auto keys = [](const std::string& file, const std::string& more = {}) {
    return "profile=\"lab\"\n" + model_line + "[listen]\napi=\"127.0.0.1:0\"\napi_keys=\"" + file +
           "\"\n" + more;
  };
  std::string host = "[[hosts]]\nname=\"a\"\n";
  EXPECT_TRUE(check(keys(tiny + "/config.json")).good());
  refuses(keys(tiny), {"listen.api_keys: ", "tiny"});
  refuses(keys("/dev/null"), {"listen.api_keys: "});
  refuses(keys("nowhere"), {"c.toml:6: listen.api_keys: ", "nowhere"});
  auto c = check(keys("nowhere", host));
  EXPECT_TRUE(c.good()) << problems(c);
  ASSERT_EQ(c.layout.notes.size(), 1u);
  EXPECT_NE(c.layout.notes[0].find("nowhere is not on this machine"), std::string::npos);
  refuses(keys(tiny, host), {"listen.api_keys: "});
}

TEST(ConfigCheck, MoreThreadsThanThisMachineHasAreANote) {
  auto notes = [](const std::string& more) {
    auto c = check(model_line + more);
    EXPECT_TRUE(c.good()) << problems(c);
    return c.layout.notes;
  };
  std::string said = "9 threads of 1 rank share 8 cores on ";
  auto starts = [&said](const std::vector<std::string>& all) {
    return all.size() == 1 && all[0].starts_with(said);
  };
  EXPECT_TRUE(notes("[engines]\nthreads=8\n").empty());
  EXPECT_TRUE(starts(notes("[engines]\nthreads=9\n")));
  std::string stated = "[engines]\nthreads=9\n[[hosts]]\nname=\"a\"\ncores=64\n";
  EXPECT_TRUE(starts(notes(stated)));
  EXPECT_TRUE(notes(stated + "address=\"10.0.0.1\"\n").empty()) << "of another machine";
  auto c = check(model_line + stated + "address=\"10.0.0.1\"\n");
  EXPECT_TRUE(shared_cores(c.layout, "a", testing::eight_cores)) << "it is this one after all";
}

TEST(ConfigCheck, RecordsOfEveryMessageAreForTheLab) {
  refuses(model_line + "[trace]\nmode=\"all\"\n", {"trace.mode", "full-traces", "strict"});
  EXPECT_TRUE(check("profile=\"lab\"\n" + model_line + "[trace]\nmode=\"all\"\n").good());
}

TEST(ConfigCheck, NumbersThatContradictEachOther) {
  refuses(model_line + "[health]\nheartbeat_ms=600\n", {"health.lost_after_ms", "1200"});
  refuses(model_line + "[scaling]\nleast=3\nmost=2\n", {"scaling.most"});
  refuses(model_line + "[batching]\nchunk_tokens=600\n", {"batching.chunk_tokens", "512"});
  refuses(model_line + "[engines]\nranks=[\"a\"]\n", {"engines.ranks", "exact"});
}

TEST(ConfigCheck, ScalingByLoadHasBoundsThatFitAndThresholdsThatCanBeReached) {
  auto scaled = [](const std::string& more) { return model_line + "[scaling]\nmost=2\n" + more; };
  EXPECT_TRUE(check(scaled("least=2\n")).good());
  EXPECT_TRUE(check(scaled("queued=2\nqueued_low=1\npages=41\n")).good());
  refuses(scaled("queued=2\nqueued_low=2\n"), {"scaling.queued_low", "scaling.queued (2)"});
  refuses(scaled("pages=40\n"), {"scaling.pages_low", "scaling.pages (40)"});
  refuses(scaled("[engines]\ncount=3\n"), {"scaling.most", "engines.count (3)"});
  EXPECT_TRUE(check(scaled("least=1\n[engines]\ncount=3\n")).good());
  EXPECT_TRUE(check(scaled("[batching]\nqueue=8\nrunning=4\n")).good());
  refuses(scaled("[batching]\nqueue=7\nrunning=4\n"), {"scaling.queued", "8 or more"});
  refuses(scaled("[engines]\nplacement=\"exact\"\nranks=[\"local\"]\n"), {"scaling.most", "exact"});
  std::string host = "[[hosts]]\nname=\"a\"\n";
  EXPECT_TRUE(check(scaled(host + "cores=2\n")).good());
  refuses(scaled(host + "cores=1\n"), {"scaling.most: too few devices"});
}

TEST(ConfigCheck, WhereTheLoadDecidesEachEngineHasThePlaceAndThreadsThatItKeeps) {
  auto c = check(model_line + "[scaling]\nmost=4\n");
  ASSERT_TRUE(c.good()) << problems(c);
  EXPECT_EQ(places(c), "0.0.0@local 1.0.0@local 2.0.0@local 3.0.0@local ");
  for (const auto& r : c.layout.ranks) EXPECT_EQ(r.threads, 2u);
}

TEST(ConfigCheck, EveryFileThatWeShipIsAccepted) {
  size_t seen = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(places::source) + "/configs")) {
    if (file.path().extension() != ".toml") continue;
    auto c = check_config(file.path(), testing::eight_cores);
    for (const auto& p : c.config.problems()) ADD_FAILURE() << p;
    ++seen;
  }
  EXPECT_GE(seen, 5u);
}

}  // namespace
}  // namespace lethe
