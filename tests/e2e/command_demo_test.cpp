// The README's first command, as a newcomer sees it.
#include <gtest/gtest.h>

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
        "→ face@local", "Your cat is called Tom.", "ok     receipt", "issuer and gateway  0\n"})
    EXPECT_NE(said.find(part), said.npos) << part << "\n" << said;
  for (const char* row : {"issuer ", "relay ", "gateway "}) {
    const size_t at = said.find(row, said.find("the account"));
    const std::string line = said.substr(at, said.find('\n', at) - at);
    EXPECT_EQ(line.find("yes") != line.npos, *row == 'i') << line;  // the account, and only there
  }
}

}  // namespace
}  // namespace lethe
