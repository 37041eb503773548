// `lethe config check` and `lethe up` refuse what the profile forbids; the policy's page is what
// the program prints.
#include <gtest/gtest.h>

#include <iterator>

#include "tests/e2e/cluster.hpp"

namespace lethe {
namespace {

struct Policy : testing::Test {
  Policy() { ::setenv("XDG_RUNTIME_DIR", folder_.write("x", "").c_str(), 1); }
  std::string config(const std::string& optimizations, const std::string& profile) const {
    return folder_.write("c.toml", "profile = \"" + profile + "\"\noptimizations = [" +
                                       optimizations + "]\n[model]\npath = \"" +
                                       std::string(places::source) + "/models/tiny\"\n");
  }
  scratch_folder folder_;
};

TEST_F(Policy, WhatTheProfileForbidsStartsNothing) {
  auto file = config("\"prefix-cache\"", "strict");
  for (const char* command : {"config check", "up"}) {
    std::istringstream words(command);
    std::vector<std::string> argv{std::istream_iterator<std::string>(words), {}};
    argv.push_back(file);
    auto said = run_lethe(argv);
    EXPECT_EQ(said.exit_code, 1) << said.out;
    EXPECT_NE(said.err.find("c.toml:2: optimizations[0]: prefix-cache is refused by profile "
                            "\"strict\": it would break stateless computation (S) and enforceable "
                            "guarantees (E), since "),
              said.err.npos)
        << said.err;
    EXPECT_NE(said.err.find("use instead: prefix-sharing-in-request"), said.err.npos) << said.err;
    EXPECT_NE(said.err.find("nothing was started"), said.err.npos) << said.err;
  }
}

TEST_F(Policy, WhatIsTakenIsANote) {
  auto said = run_lethe({"config", "check", config("\"chunked-prefill\"", "strict")});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_NE(said.out.find("note: chunked-prefill is always on"), said.out.npos) << said.out;
  said = run_lethe({"config", "check", config("\"prefix-cache\"", "lab")});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_NE(said.out.find("note: prefix-cache is on"), said.out.npos) << said.out;
}

TEST_F(Policy, TheTableIsPrintedWholeAndByName) {
  auto page = run_lethe({"config", "policy", "--markdown"});
  EXPECT_EQ(page.exit_code, 0);
  EXPECT_EQ(page.out, read_file(std::string(places::source) + "/docs/policy.md"));
  auto all = run_lethe({"config", "policy"});
  EXPECT_NE(all.out.find("disk-kv "), all.out.npos);
  auto one = run_lethe({"config", "policy", "ssd-kv"});
  EXPECT_TRUE(one.out.starts_with("disk-kv: ")) << one.out;
  auto none = run_lethe({"config", "policy", "disk-kw"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("did you mean disk-kv?"), none.err.npos) << none.err;
}

}  // namespace
}  // namespace lethe
