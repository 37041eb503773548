// The audit of the built program, as its reader runs it.
#include <gtest/gtest.h>

#include "tests/e2e/command.hpp"

namespace lethe {
namespace {

const std::string model = std::string(places::source) + "/models/ember";

TEST(CommandAudit, EveryPromiseStandsAndEveryControlIsFound) {
  scratch_folder folder;
  auto said = run_lethe({"audit", "--quick", "--model", model, "--out", folder / "report"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err;
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const auto text = read_file(folder / "report/audit.json");
  ASSERT_FALSE(parser.parse(text).get(root)) << text;
  EXPECT_TRUE(bool(root["stands"])) << said.out;
  for (auto f : root["findings"].get_array()) {
    EXPECT_EQ(std::string_view(f["verdict"]), "held") << f;
    const bool has_controls = f["controls"].get_array().size() > 0;
    EXPECT_TRUE(has_controls || std::string_view(f["bound"]) == "stated") << f;
  }
  EXPECT_TRUE(read_file(folder / "report/audit.html").starts_with("<!doctype html>"));
}

TEST(CommandAudit, SaysWhatItLacks) {
  auto said = run_lethe({"audit", "--model", "/nowhere"});
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_NE(said.err.find("/nowhere: no such model"), std::string::npos) << said.err;
  said = run_lethe({"audit", "--model", model, "--only", "everything"});
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_NE(said.err.find("--only everything: there is no such part"), std::string::npos)
      << said.err;
  said = run_lethe({"audit", "--model", model, "--controls", "/nowhere"});
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_NE(said.err.find("--controls"), std::string::npos) << said.err;
  // Before anything is measured.
  scratch_folder folder;
  said = run_lethe({"audit", "--model", model, "--out", folder.write("report", "a file")});
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_EQ(said.out, "");
  EXPECT_NE(said.err.find("--out "), std::string::npos) << said.err;
}

}  // namespace
}  // namespace lethe
