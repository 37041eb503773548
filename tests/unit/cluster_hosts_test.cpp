#include "runtime/cluster/cluster_plan.hpp"

#include <gtest/gtest.h>

namespace lethe {
namespace {

const machine here{.cores = 8, .memory = uint64_t{1} << 34};

cluster_config config(const std::vector<std::string>& hosts, int engines,
                      const std::string& more = {}) {
  std::string text = "profile = \"lab\"\n[model]\npath = \"/models/x\"\n[tls]\nfolder = \"keys\"\n";
  int last = 0;
  for (const auto& name : hosts)
    text += fmt::format("[[hosts]]\nname = \"{}\"\naddress = \"10.0.0.{}\"\nport = 7001\n", name,
                        ++last);
  text += fmt::format("[engines]\nplacement = \"spread\"\ncount = {}\n", engines) + more;
  return cluster_config::parse(text, "x.toml");
}

cluster_plan plan(const std::vector<std::string>& hosts, int engines) {
  auto made = cluster_plan::make(config(hosts, engines).get(), here);
  EXPECT_TRUE(made) << (made ? "" : made.why().text);
  return *std::move(made);
}

std::vector<std::string> places(const cluster_plan& p) {
  std::vector<std::string> all;
  for (const auto& place : p.places()) all.push_back(place.host);
  return all;
}

using lines = std::vector<std::string>;

TEST(ClusterHosts, AHostIsAddedAndItsEnginePlacedThere) {
  auto p = plan({"a", "b"}, 2);
  auto next = config({"a", "b", "c"}, 3);
  auto said = p.changes(next.get());
  ASSERT_TRUE(said) << said.why().text;
  EXPECT_EQ(*said,
            (lines{"engines.count: 2 -> 3", "hosts[c]: added; its engines start when it joins"}));
  EXPECT_FALSE(p.knows_host("c"));
  ASSERT_TRUE(p.apply(next.get()));
  EXPECT_TRUE(p.knows_host("c"));
  EXPECT_EQ(places(p), (lines{"a", "b", "c"}));
  EXPECT_EQ(p.places()[0].version, 1u);  // nobody is replaced
}

TEST(ClusterHosts, AHostIsRemovedFromTheMiddle) {
  auto p = plan({"a", "b", "c"}, 3);
  auto next = config({"a", "c"}, 2);
  // c moves up a place in the list, with another address
  auto said = p.changes(next.get());
  ASSERT_TRUE(said) << said.why().text;
  EXPECT_EQ(*said, (lines{"engines.count: 3 -> 2",
                          "hosts[b]: removed; its engines drain, then its process ends",
                          "hosts[c].address: \"10.0.0.3\" -> \"10.0.0.2\""}));
  ASSERT_TRUE(p.apply(next.get()));
  EXPECT_EQ(places(p), (lines{"a", "c"}));
  EXPECT_FALSE(p.knows_host("b"));
}

TEST(ClusterHosts, TheLeaderStaysWhereItIs) {
  auto p = plan({"a", "b"}, 2);
  auto other = p.changes(config({"b", "a"}, 2).get());
  ASSERT_FALSE(other);
  EXPECT_NE(other.why().text.find("hosts[a] leads"), std::string::npos) << other.why().text;
  EXPECT_FALSE(p.changes(config({"b"}, 2).get()));
  auto moved = p.changes(cluster_config::parse("profile = \"lab\"\n[model]\npath = \"/models/x\"\n"
                                               "[tls]\nfolder = \"keys\"\n[[hosts]]\nname = \"a\"\n"
                                               "address = \"10.0.0.9\"\nport = 7001\n",
                                               "x.toml")
                             .get());
  ASSERT_FALSE(moved);
  EXPECT_NE(moved.why().text.find("hosts[a].address"), std::string::npos) << moved.why().text;
  auto more_cores = config({"a", "b"}, 2);
  more_cores.edit().getHosts()[0].setCores(3);
  EXPECT_TRUE(p.changes(more_cores.get()));
}

TEST(ClusterHosts, KeysCannotBeSetWhileItRuns) {
  auto alone = cluster_plan::make(
      cluster_config::parse("profile = \"lab\"\n[model]\npath = \"/models/x\"\n[[hosts]]\n"
                            "name = \"a\"\naddress = \"10.0.0.1\"\nport = 7001\n",
                            "x.toml")
          .get(),
      here);
  ASSERT_TRUE(alone);
  auto said = alone->changes(config({"a", "b"}, 2).get());
  ASSERT_FALSE(said);
  EXPECT_NE(said.why().text.find("tls.folder"), std::string::npos) << said.why().text;
}

}  // namespace
}  // namespace lethe
