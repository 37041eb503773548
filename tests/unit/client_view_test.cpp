// What a client checks before it believes a cluster: each lie, and the line that refuses it.
#include "runtime/client/cluster_view.hpp"

#include <thread>

#include "runtime/crypto/big_endian.hpp"
#include "runtime/http/http_client.hpp"
#include "runtime/http/listen.hpp"
#include "tests/unit/client_cluster.hpp"

namespace lethe {
namespace {

using namespace test;

/// A client's view of a cluster, from its beginning.
struct viewer {
  explicit viewer(fake_cluster& c, client_home& home)
      : cluster(c),
        trust(home.trust()),
        http(*http_client::start({}, {})),
        channel(*http, trust.relays, trust.origin) {
    open();
  }
  void open() {
    auto opened = cluster_view::open(trust, channel);
    EXPECT_TRUE(opened) << opened.why().text;
    if (opened) view = *std::move(opened);
  }
  call_end look() { return view->refresh(cluster.now_s).end; }

  fake_cluster& cluster;
  trust_file trust;
  std::unique_ptr<http_client> http;
  oblivious_channel channel;
  std::unique_ptr<cluster_view> view;
};

::testing::AssertionResult refused_as(const call_end& end, call_fault kind, std::string_view text) {
  if (end) return ::testing::AssertionFailure() << "was believed";
  if (end.fault != kind) return ::testing::AssertionFailure() << int(end.fault) << end.why.text;
  if (end.why.text.find(text) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << end.why.text;
}

struct ClientView : ::testing::Test {
  fs::path beside_wallet(const char* ending) const {
    const auto id = load_be<uint64_t>(log_signer().key().public_key().data());
    return home.folder / fmt::format("wallet.{:016x}{}", id, ending).c_str();
  }
  fake_cluster cluster;
  client_home home{cluster};
  viewer v{cluster, home};
};

TEST_F(ClientView, SeesAnHonestCluster) {
  auto state = v.view->refresh(cluster.now_s);
  ASSERT_TRUE(state) << state.end.why.text;
  EXPECT_EQ((*state)->nodes, cluster.nodes());
  EXPECT_EQ((*state)->policy.name, "embedded");
  EXPECT_EQ((*state)->issuer.keys.size(), 1u);
  ASSERT_EQ((*state)->steps.size(), 5u);
  EXPECT_EQ((*state)->steps[3].name, std::string("shape"));
  EXPECT_EQ(
      (*state)->steps[3].detail,
      "answers in chunks of 512 bytes, when there is something to say; a power of two of them");
  EXPECT_NE((*state)->steps[4].detail.find("nothing attests"), std::string::npos);
  auto again = v.view->at(cluster.now_s + 10);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *state);
}

/// How a policy shapes answers, what the trust file accepts, and what is said of it.
void expect_shape(const answer_shape& logged, shape_mode accepted, const std::string& name,
                  std::string_view refusal) {
  log_policy p = sample_policy();
  p.name = name;
  p.chunk_bytes = logged.chunk_bytes;
  p.tick_ms = logged.tick_ms;
  p.token_challenge = cluster_challenge.to_bytes();
  fake_cluster cluster;
  client_home home{cluster};
  auto trust = home.trust();
  trust.policy.name = name;
  trust.policy.shape = accepted;
  auto ok = check_policy(p, trust);
  std::string why = ok ? "" : ok.why().text;
  EXPECT_EQ(why.empty(), refusal.empty()) << why;
  EXPECT_NE(why.find(refusal), std::string::npos) << why;
}

TEST(ClientViewShape, IsTheTrustFilesAtLeast) {
  const answer_shape off, size{.chunk_bytes = 512}, tick{.chunk_bytes = 512, .tick_ms = 20};
  for (auto accepted : {shape_mode::off, shape_mode::size, shape_mode::size_tick})
    expect_shape(tick, accepted, "embedded", "");
  expect_shape(size, shape_mode::size, "embedded", "");
  expect_shape(size, shape_mode::size_tick, "embedded",
               "the shape of answers is \"size\"; the trust file accepts \"size_tick\"");
  expect_shape(off, shape_mode::size, "embedded",
               "the shape of answers is \"off\"; the trust file accepts \"size\"");
  expect_shape(off, shape_mode::off, "embedded", "");
  expect_shape(off, shape_mode::off, "strict", "it is named strict, and does not shape answers");
  expect_shape(size, shape_mode::off, "strict", "");
}

/// The policy's minimum is 20.
TEST_F(ClientView, SaysWhenFewBoughtUnderAKey) {
  const auto crowd = [&](std::optional<uint64_t> buyers) {
    cluster.buyers = buyers;
    cluster.log_issuer();
    auto state = v.view->refresh(cluster.now_s);
    EXPECT_TRUE(state) << state.end.why.text;
    auto said = std::ranges::find((*state)->steps, "crowd", &check_step::name);
    EXPECT_NE(said, (*state)->steps.end());
    EXPECT_TRUE((*state)->small_crowds.empty()) << "the trust file demands nothing";
    return *said;
  };
  cluster.now_s += 1;
  cluster.add_issuer_key(1, cluster.now_s);
  EXPECT_TRUE(crowd(20).ok);
  EXPECT_TRUE(crowd(30).ok);
  EXPECT_EQ(crowd(30).detail, "30 accounts or more bought under the key before");
  EXPECT_FALSE(crowd(10).ok);
  EXPECT_EQ(crowd(10).detail,
            "10 accounts or more bought under the key before; 20 are wanted: its tokens hide among "
            "few");
  EXPECT_EQ(crowd(0).detail.find("fewer than ten accounts bought under the key before; 20"), 0u);
  EXPECT_FALSE(crowd({}).ok);
  EXPECT_NE(crowd({}).detail.find("nobody says how many"), std::string::npos);
}

TEST_F(ClientView, FollowsTheClusterAndReadsAnewWhatIsOver) {
  ASSERT_TRUE(v.look());
  cluster.now_s += 600;
  cluster.set_roster(4);
  cluster.rotate_keys();
  auto state = v.view->refresh(cluster.now_s);
  ASSERT_TRUE(state) << state.end.why.text;
  EXPECT_EQ((*state)->nodes.epoch, 2u);
  cluster.now_s += 1300;
  cluster.set_roster(4);
  auto later = v.view->at(cluster.now_s);
  ASSERT_TRUE(later) << later.end.why.text;
  EXPECT_EQ((*later)->nodes.epoch, 3u);
}

TEST_F(ClientView, AsksAgainWithTheNewKeysOfAGateway) {
  ASSERT_TRUE(v.look());
  cluster.forget_keys();
  EXPECT_TRUE(v.look());
}

TEST_F(ClientView, RefusesKeysThatAreNotLogged) {
  auto others = ohttp_keys::make({.grace = 60, .first_id = 7});
  cluster.cheat.keys = [&](bytes& keys) { keys = others->published(); };
  EXPECT_TRUE(refused_as(v.look(), call_fault::gateway, "answers 400 outside the sealed layer"));
  others = ohttp_keys::make({.grace = 60, .first_id = 40});
  EXPECT_TRUE(refused_as(v.look(), call_fault::stale_key, "does not take this key"));
  // Also where they open what is asked: by one more key behind the logged ones.
  cluster.cheat.keys = [&](bytes& keys) {
    auto more = others->published();
    auto both = *read_ohttp_keys(keys);
    auto extra = read_ohttp_keys(more)->back();
    extra.key_id = 99;
    both.push_back(extra);
    keys = write_ohttp_keys(both);
  };
  EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "gateway keys: those that the relay"));
}

TEST_F(ClientView, RefusesKeysWithoutForm) {
  cluster.cheat.keys = [](bytes& keys) { keys.pop_back(); };
  EXPECT_TRUE(refused_as(v.look(), call_fault::gateway, "ohttp"));
}

TEST_F(ClientView, RefusesAHeadWithoutItsWitnesses) {
  cluster.witnesses = 1;
  EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "log: no quorum"));
}

TEST_F(ClientView, RefusesAHeadThatIsOld) {
  cluster.witnessed_at_s = cluster.now_s - 121;
  EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "log: stale"));
  cluster.witnessed_at_s = cluster.now_s - 120;
  EXPECT_TRUE(v.look());
}

TEST_F(ClientView, StopsForGoodAtAForkAndKeepsTheEvidence) {
  ASSERT_TRUE(v.look());
  cluster.log.entries.pop_back();
  cluster.now_s += 1;
  auto leaves = cluster.nodes();
  cluster.log.add(leaves.summary(cluster.now_s).to_entry(1));
  EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "log: fork"));
  EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "evidence that this log told two stories"));
  EXPECT_FALSE(v.view->at(cluster.now_s));
  EXPECT_TRUE(fs::exists(beside_wallet(".evidence")));
  EXPECT_FALSE(cluster_view::open(v.trust, v.channel));
}

TEST_F(ClientView, RemembersTheHeadThatAnEarlierProcessSaw) {
  ASSERT_TRUE(v.look());
  cluster.log.entries.pop_back();
  cluster.log.add(cluster.nodes().summary(cluster.now_s + 1).to_entry(1));
  v.open();
  EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "log: fork"));
  // Without that memory nobody would notice.
  fs::remove(beside_wallet(".evidence"));
  fs::remove(beside_wallet(".log"));
  v.open();
  EXPECT_TRUE(v.look());
}

TEST_F(ClientView, RefusesAMemoryThatIsDamagedAtEveryByte) {
  ASSERT_TRUE(v.look());
  const auto file = beside_wallet(".log");
  const bytes good = file_bytes(file);
  ASSERT_TRUE(view_memory::from_bytes(good));
  for (size_t size = 14; size < good.size(); ++size)
    EXPECT_FALSE(size > 14 && view_memory::from_bytes(bytes_view(good).first(size))) << size;
  for (size_t size = 0; size < 14; ++size)
    EXPECT_FALSE(view_memory::from_bytes(bytes_view(good).first(size))) << size;
  put_file(file, bytes_view(good).first(40));
  auto opened = cluster_view::open(v.trust, v.channel);
  EXPECT_TRUE(refused(opened, file.string()));
}

TEST_F(ClientView, RefusesAPolicyThatPromisesLess) {
  struct {
    std::function<void(log_policy&)> change;
    const char* why;
  } cases[] = {
      {[](log_policy& p) { p.name = "strict"; }, "policy: it is named strict"},
      {[](log_policy& p) { p.candidates = 2; }, "policy: k is 2"},
      {[](log_policy& p) { p.redraws = 3; }, "policy: r is 3"},
      {[](log_policy& p) { p.roster_age_max_s = 3601; }, "policy: a roster's age is 3601"},
      {[](log_policy& p) { p.token_challenge = a_challenge.to_bytes(); }, "names another issuer"},
      {[](log_policy& p) {
         auto tag = cluster_challenge;
         tag.redemption_context = hash32{};
         p.token_challenge = tag.to_bytes();
       },
       "redemption context"},
      {[](log_policy& p) { p.nodes_min = 4; }, "roster: 3 nodes; the policy wants 4"},
      {[](log_policy& p) { p.share_max_permille = 300; }, "roster: one node has more"},
  };
  for (const auto& c : cases) {
    fake_cluster other(3, c.change);
    client_home there(other);
    viewer w(other, there);
    EXPECT_TRUE(refused_as(w.look(), call_fault::trust, c.why)) << c.why;
  }
}

TEST_F(ClientView, RefusesARosterThatIsNotTheLoggedOne) {
  cluster.cheat.roster = [&](bytes& served) {
    auto r = cluster.nodes();
    r.leaves.pop_back();
    served = r.to_bytes();
  };
  EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "roster: epoch 1 is not the one"));
  cluster.cheat.roster = [&](bytes& served) {
    auto r = cluster.nodes();
    r.epoch = 2;
    served = r.to_bytes();
  };
  EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "roster: of epoch 2; the log's is 1"));
}

TEST_F(ClientView, RefusesARosterWithATamperedLeafAtEveryByte) {
  size_t at = 0;
  cluster.cheat.roster = [&](bytes& served) { served[at] ^= std::byte{1}; };
  for (const size_t size = cluster.nodes().to_bytes().size(); at < size; at += 37)
    EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "roster")) << at;
}

TEST_F(ClientView, RefusesALeafThatItsIdentityDidNotSign) {
  cluster.now_s += 1;
  // Logged as it is served: only the signature is somebody else's.
  auto forged = cluster.nodes();
  forged.epoch = 2;
  forged.leaves[0].identity_signature[0] ^= std::byte{1};
  cluster.set_roster(3);
  cluster.log.entries.pop_back();
  cluster.log.add(forged.summary(cluster.now_s).to_entry(2));
  cluster.cheat.roster = [&](bytes& served) { served = forged.to_bytes(); };
  EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "roster: a leaf's signature"));
}

TEST_F(ClientView, RefusesEvidenceThatTheTrustFileDoesNotName) {
  client_home strict(cluster, {"tpm2"});
  viewer w(cluster, strict);
  EXPECT_TRUE(refused_as(w.look(), call_fault::trust, "evidence \"none\", which the trust file"));
}

TEST_F(ClientView, RefusesGrowthAboveTheRateAlsoAfterARestart) {
  ASSERT_TRUE(v.look());
  cluster.set_roster(5);  // half again is allowed
  v.open();
  EXPECT_TRUE(refused_as(v.look(), call_fault::trust, "roster: capacity grew"));
}

TEST_F(ClientView, StopsWaitingForARelayThatSaysNothing) {
  auto silent = *listen_socket::open("127.0.0.1:0");
  auto relay = *server_at::from_url("http://" + silent.bound());
  oblivious_channel channel(*v.http, {relay}, v.trust.origin);
  auto view = *cluster_view::open(v.trust, channel);
  std::stop_source source;
  std::thread stopper([&] { source.request_stop(); });
  EXPECT_TRUE(refused_as(view->refresh(cluster.now_s, source.get_token()).end, call_fault::relay,
                         "stopped"));
  stopper.join();
  auto key = read_ohttp_keys(*v.channel.fetch_keys())->front();
  auto page = channel.ask_whole(key, {.path = "/checkpoint"}, 10'000, source.get_token());
  EXPECT_EQ(page.end.fault, call_fault::cancelled);
}

TEST_F(ClientView, TellsARelayThatIsAwayFromACheat) {
  v.trust.relays[0].origin.port = 1;
  oblivious_channel nowhere(*v.http, v.trust.relays, v.trust.origin);
  auto view = *cluster_view::open(v.trust, nowhere);
  EXPECT_TRUE(refused_as(view->refresh(cluster.now_s).end, call_fault::relay, "no connection"));
  // A second relay is asked instead.
  auto both = v.trust.relays;
  both.push_back(home.trust().relays[0]);
  oblivious_channel two(*v.http, both, v.trust.origin);
  view = *cluster_view::open(v.trust, two);
  EXPECT_TRUE(view->refresh(cluster.now_s));
  // Also for what is asked first of all.
  oblivious_channel fresh(*v.http, both, v.trust.origin);
  auto key = read_ohttp_keys(*v.channel.fetch_keys())->front();
  auto page = fresh.ask_whole(key, {.path = "/checkpoint"}, 10'000);
  ASSERT_TRUE(page) << page.end.why.text;
  EXPECT_EQ(page->status, 200u);
  page = fresh.ask_whole(key, {.path = "/checkpoint"}, 20);
  EXPECT_EQ(page.end.fault, call_fault::gateway);
}

}  // namespace
}  // namespace lethe
