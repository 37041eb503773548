// Engines whose ranks lie on several hosts, each a network namespace on one switch: they say what
// one process says, nothing of it can be read on the wire, and a rank, a host or a cable that is
// lost ends one engine alone.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <map>
#include <set>

#include "tests/e2e/engine_run.hpp"
#include "tests/e2e/hosts.hpp"
#include "tests/e2e/ranks.hpp"
#include "tests/unit/parallel_grid_run.hpp"

namespace lethe {
namespace {

std::string ember() { return std::string(places::source) + "/models/ember"; }

class Wide : public hosts_test {
 protected:
  /// Ranks as `places` lists them, engine by engine.
  std::string wide(int tensor, int pipeline, const std::vector<std::string>& places,
                   const std::string& health = {}, const std::string& more = {}) const {
    std::string text = "name = \"wide\"\nprofile = \"lab\"\n[model]\nname = \"tiny\"\npath = \"" +
                       ember() +
                       "\"\n[listen]\napi = \"127.0.0.1:0\"\n[batching]\nkv_memory = \"16 MiB\"\n" +
                       "[tls]\nfolder = \"keys\"\n[health]\nlost_after_ms = 3000\n" + health;
    for (const char* name : {"north", "south"})
      text += "[[hosts]]\nname = \"" + std::string(name) + "\"\naddress = \"" +
              machine(name).address + "\"\nport = " + std::to_string(port) + "\n";
    text += "[engines]\nprocesses = \"ranks\"\nthreads = 1\nplacement = \"exact\"\ntensor = " +
            std::to_string(tensor) + "\npipeline = " + std::to_string(pipeline) +
            "\ncount = " + std::to_string(int(places.size()) / (tensor * pipeline)) + "\nranks = [";
    for (const auto& p : places) text += "\"" + p + "\", ";
    return text + "]\n" + more;
  }
  void up_both(const std::string& path) {
    for (const char* name : {"north", "south"}) up(path, name);
  }
  void down_both(const std::string& path) {
    EXPECT_EQ(run_lethe({"down", "--cluster", path}).exit_code, 0);
    for (const char* name : {"north", "south"})
      EXPECT_EQ(host(name).wait(), 0) << host(name).errors();
  }
  /// One engine on both hosts, where another folder lies over the model's on south.
  std::string up_both_where_south_sees(const std::string& other) {
    auto path = file("wide.toml", wide(1, 2, {"north", "south"}, "restarts = 1\n"));
    up(path, "north");
    machine("south").on([&] {
      EXPECT_EQ(::unshare(CLONE_FS | CLONE_NEWNS), 0);
      EXPECT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
      EXPECT_EQ(::mount(other.c_str(), ember().c_str(), nullptr, MS_BIND, nullptr), 0);
      running_.try_emplace("south", host_of{path, "south"});
    });
    return path;
  }
  std::string copy_of_model() const {
    auto copy = folder_ / "copy";
    std::filesystem::copy(ember(), copy, std::filesystem::copy_options::recursive);
    return copy;
  }
  std::string why_parked(const std::string& path) {
    EXPECT_TRUE(host("north").tells("parked")) << host("north").errors();
    return run_lethe({"status", "--cluster", path}).out;
  }
  std::vector<std::string> said() {
    return machine("north").on([to = api()] { return said_at(to); });
  }
  std::vector<pid_t> ranks_on(const std::string& name) { return ranks_of(host(name)); }
  bool ready(const std::string& path, const std::string& how_many) const {
    return run_lethe({"status", "--cluster", path}).out.find(how_many + " engines ready") !=
           std::string::npos;
  }
};

TEST_F(Wide, AnswersAreThoseOfOneProcess) {
  std::vector<std::string> expected;
  {
    auto path = file("alone.toml", wide(1, 1, {"north"}));
    up_both(path);
    ASSERT_TRUE(host("north").tells("ready: 1 of 1")) << host("north").errors();
    ASSERT_TRUE(eventually([&] { return joined(path, "south"); })) << "or it would not hear of it";
    expected = said();
    down_both(path);
  }
  struct {
    int tensor, pipeline;
    std::vector<std::string> places;
  } cuts[] = {{2, 1, {"north", "south"}},
              {1, 2, {"south", "north"}},
              {2, 2, {"north", "south", "north", "south"}},
              {4, 1, {"north", "south", "south", "south"}}};
  for (const auto& cut : cuts) {
    SCOPED_TRACE(std::to_string(cut.tensor) + "x" + std::to_string(cut.pipeline));
    auto path = file("wide.toml", wide(cut.tensor, cut.pipeline, cut.places));
    up_both(path);
    ASSERT_TRUE(host("north").tells("ready: 1 of 1")) << host("north").errors();
    const std::string& leads = cut.places[0];
    size_t led = 0;  // an engine's process is none of its ranks'
    for (const auto& place : cut.places) led += place == leads;
    EXPECT_EQ(ranks_on(leads).size(), led - 1);
    EXPECT_EQ(ranks_on(leads == "north" ? "south" : "north").size(), cut.places.size() - led);
    EXPECT_EQ(said(), expected);
    auto status = run_lethe({"status", "--cluster", path}).out;
    EXPECT_NE(
        status.find("ranks on " + std::string(leads == "north" ? "south" : "north") + ", too"),
        std::string::npos)
        << status;
    std::vector<pid_t> all = ranks_on("north");
    for (pid_t p : ranks_on("south")) all.push_back(p);
    down_both(path);
    for (pid_t p : all) EXPECT_TRUE(eventually([p] { return is_gone(p); }));
  }
}

class WideLoss : public Wide, public ::testing::WithParamInterface<int> {};

/// Of two engines, one on both hosts and one on north.
TEST_P(WideLoss, OfARankEndsItsEngineWhichBeginsAnewAndTheOtherServesOn) {
  auto path =
      file("wide.toml", wide(1, 2, {"north", "south", "north", "north"}, "rank_ms = 2000\n"));
  up_both(path);
  ASSERT_TRUE(host("north").tells("ready: 2 of 2")) << host("north").errors();
  auto busy = clients(4, 60);
  ASSERT_TRUE(eventually([&] { return busy->seen.whole > 20; }));
  ASSERT_EQ(ranks_on("south").size(), 1u);
  const pid_t lost = ranks_on("south")[0];
  ::kill(lost, GetParam());
  EXPECT_TRUE(eventually([&] {
    auto now = ranks_on("south");
    return now.size() == 1 && now[0] != lost && ready(path, "2 of 2");
  })) << host("north").errors();
  EXPECT_TRUE(eventually([&] { return is_gone(lost); })) << "a stopped one is killed, too";
  const uint64_t before = busy->seen.whole;
  EXPECT_TRUE(eventually([&] { return busy->seen.whole > before + 20; }));
  busy->end();
  EXPECT_EQ(busy->seen.cut + busy->seen.other, 0u);
  down_both(path);
}

INSTANTIATE_TEST_SUITE_P(Wide, WideLoss, ::testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& p) { return p.param == SIGKILL ? "Killed" : "Stopped"; });

TEST_F(Wide, AHostThatIsCutOffTakesItsEnginesAlongUntilItIsBack) {
  auto path = file("wide.toml", wide(2, 1, {"north", "south", "north", "north"}));
  up_both(path);
  ASSERT_TRUE(host("north").tells("ready: 2 of 2")) << host("north").errors();
  auto busy = clients(4, 20);
  ASSERT_TRUE(eventually([&] { return busy->seen.whole > 20; }));
  const auto before = ranks_on("south");
  ASSERT_EQ(machine("south").cable(false), "");
  EXPECT_TRUE(eventually([&] { return ready(path, "1 of 2"); }, 60)) << host("north").errors();
  const uint64_t served = busy->seen.whole;
  EXPECT_TRUE(eventually([&] { return busy->seen.whole > served + 20; }));
  ASSERT_EQ(machine("south").cable(true), "");
  EXPECT_TRUE(eventually([&] { return ready(path, "2 of 2"); }, 60)) << host("north").errors();
  for (pid_t p : before) EXPECT_TRUE(eventually([p] { return is_gone(p); }));
  busy->end();
  EXPECT_EQ(busy->seen.cut + busy->seen.other, 0u);
  EXPECT_EQ(run_lethe({"status", "--cluster", path}).out.find("parked"), std::string::npos);
  down_both(path);
}

TEST_F(Wide, OtherWeightsOnAnotherHostAreSeen) {
  auto other = copy_of_model();
  auto text = read_file(other + "/model.safetensors");
  for (size_t i = text.size() / 2; i < text.size(); i += 7) text[i] ^= 1;
  std::ofstream(other + "/model.safetensors", std::ios::binary) << text;
  auto why = why_parked(up_both_where_south_sees(other));
  EXPECT_NE(why.find("holds other weights on host south than on north"), std::string::npos) << why;
}

TEST_F(Wide, WhyARankOfAnotherHostCannotBeginIsTold) {
  auto other = copy_of_model();
  auto path = up_both_where_south_sees(other);
  ASSERT_TRUE(host("north").tells("ready: 1 of 1")) << host("north").errors();
  std::filesystem::remove(other + "/model.safetensors");
  ::kill(ranks_on("south").at(0), SIGKILL);
  auto why = why_parked(path);
  EXPECT_NE(why.find(": " + ember() + ": has neither"), std::string::npos) << why;
}

/// What one rank and the next tell each other of a prompt, in pieces as it lies in memory: ids,
/// the activations that the first stage computes, logits.
class on_wire {
 public:
  on_wire(const std::vector<uint32_t>& prompt, const e2e::opened& m) {
    testing::manner how{.ranks = {1, 2}};
    auto g = grid::start(m.weights(), testing::config_for({prompt}, how));
    if (!g) throw std::runtime_error(g.why().text);
    auto rows = testing::run_on(**g, (*g)->depth(), m.vocab(), {prompt}, how);
    take("ids", std::as_bytes(std::span(prompt)), 24, 24);
    take("logits", std::as_bytes(std::span(rows[0].back())), 32, 256);
    take("activations", (*g)->rank(0).scratch(), 32, 256);
  }
  /// How many pieces of each kind are in `heard`.
  std::map<std::string, size_t> in(const std::string& heard) const {
    std::map<std::string, std::set<std::string>> found;
    audit::needle_finder(all_).search(
        heard, [&](size_t, const audit::needle& n) { found[n.form].insert(n.bytes); });
    std::map<std::string, size_t> count;
    for (const auto& [form, pieces] : found) count[form] = pieces.size();
    return count;
  }

 private:
  /// Pieces that are nowhere by chance: memory that was never written is zero.
  void take(const char* form, bytes_view bytes, size_t size, size_t stride) {
    for (size_t at = 0; at + size <= bytes.size(); at += stride) {
      std::string piece(as_text(bytes.subspan(at, size)));
      if (std::set<char>(piece.begin(), piece.end()).size() >= 8) all_.push_back({form, piece});
    }
  }
  std::vector<audit::needle> all_;
};

TEST_F(Wide, NothingOfARequestCanBeReadOnTheWire) {
  auto m = e2e::open(ember());
  const auto prompt = testing::random_prompt(40, m.vocab(), 5);
  const on_wire told(prompt, m);
  std::string ids;
  for (auto id : prompt) ids += (ids.empty() ? "" : ",") + std::to_string(id);
  const size_t row = m.weights().shape.hidden * sizeof(float);
  for (bool sealed : {true, false}) {
    auto path =
        file("wide.toml", wide(1, 2, {"north", "south"}, "", sealed ? "" : "links = \"clear\"\n"));
    up_both(path);
    ASSERT_TRUE(host("north").tells("ready: 1 of 1")) << host("north").errors();
    wiretap tap(machine("south").link());
    auto answer = machine("north").on([&, to = api()] {
      return http_ask(to, "/v1/completions",
                      R"({"model":"tiny","temperature":0,"max_tokens":1,"prompt":[)" + ids + "]}");
    });
    ASSERT_EQ(answer.status, 200) << answer.body;
    auto found = told.in(tap.heard());
    EXPECT_GT(tap.heard().size(), prompt.size() * row) << "too little for the activations";
    if (sealed) {
      EXPECT_EQ(found.size(), 0u) << found.begin()->second << " of " << found.begin()->first;
    } else {
      // The control. Half of all pieces at least: some lie across two packets.
      EXPECT_GT(found["ids"], prompt.size() * sizeof(uint32_t) / 24 / 2);
      EXPECT_GT(found["logits"], m.vocab() * sizeof(float) / 256 / 2);
      EXPECT_GT(found["activations"], prompt.size() * row / 256 / 2);
    }
    down_both(path);
  }
}

}  // namespace
}  // namespace lethe
