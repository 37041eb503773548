// The README's first command, as a newcomer sees it.
#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "tests/e2e/command.hpp"

namespace lethe {
namespace {

TEST(Demo, AnswersByBothPathsAndShowsWhatEachPartSaw) {
  scratch_folder folder;
  const std::string out = folder / "out";
  ::setenv("LETHE", places::program, 1);
  const std::string script = std::string(places::source) + "/configs/demo";
  EXPECT_EQ(std::system(("bash " + script + " >" + out + " 2>&1 </dev/null").c_str()), 0);
  const std::string said = read_file(out);
  for (const char* part :
       {"2 of 2 engines ready", "Your dog is called Pim.", "A river is", "I don't know",
        "→ face@local", "Your cat is called Tom.", "ok     receipt", "issuer and gateway  0\n",
        "It has answered 1: it opened that"})
    EXPECT_NE(said.find(part), said.npos) << part << "\n" << said;
  for (const char* row : {"issuer ", "relay ", "gateway "}) {
    const size_t at = said.find(row, said.find("the account"));
    const std::string line = said.substr(at, said.find('\n', at) - at);
    EXPECT_EQ(line.find("yes") != line.npos, *row == 'i') << line;  // the account, and only there
    EXPECT_EQ(line.find("127.0.0.11") != line.npos, *row != 'g') << line;
  }
  // Of how many, and by time, length, both, and one name for all.
  const auto row = [&](const std::string& name) {
    const size_t at = said.find(name + ", of ");
    EXPECT_NE(at, said.npos) << name << "\n" << said;
    std::istringstream in(said.substr(at + name.size() + 5));
    std::array<uint64_t, 5> n{};
    std::string word;
    in >> n[0] >> word >> n[1] >> n[2] >> n[3] >> n[4];
    return n;
  };
  const auto [asked, by_time, by_length, by_both, most] = row("issuer and gateway");
  EXPECT_GE(asked, 12u);
  for (uint64_t told : {by_time, by_length, by_both}) EXPECT_LE(told, most);
  EXPECT_EQ(row("relay and gateway")[0], asked);
}

TEST(Tap, MatchesWholeRecordingsOnly) {
  scratch_folder folder;
  const std::string file = folder.write("saw", "askedtold");
  const auto match = [&](const std::string& index) {
    folder.write("saw.index", index);
    return run_lethe({"tap", "match", file, file});
  };
  auto said = match("1 1 from 127.0.0.2\n2 1 > 5\n3 1 < 4\n4 1");
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(said.out, "0.000002 5 4 - 127.0.0.2 127.0.0.2 127.0.0.2\n");
  for (const auto& [index, where] : {std::pair("what is this\n", "saw.index:1: no line"),
                                     std::pair("2 1 > 5\n", "saw.index:1: "),
                                     std::pair("1 1 from 127.0.0.2\n2 1 > 10\n", "saw.index:2: "),
                                     std::pair("1 1 from 127.0.0.2\n2 1 > x\n", "saw.index:2: ")}) {
    said = match(index);
    EXPECT_EQ(said.exit_code, 1) << index;
    EXPECT_NE(said.err.find(where), said.err.npos) << said.err;
    EXPECT_EQ(said.error_lines(), 1u);
  }
}

}  // namespace
}  // namespace lethe
