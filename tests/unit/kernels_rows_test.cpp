#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/pairs_row.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

TEST(CpuRows, AreFoundByNameBestLast) {
  for (const char* name :
       {"reference", "avx2", "zen3", "avxvnni", "avx512", "avx512vnni", "zen4", "amx"}) {
    ASSERT_NE(find_cpu_row(name), nullptr);
    EXPECT_STREQ(find_cpu_row(name)->name, name);
  }
  EXPECT_EQ(find_cpu_row("neon"), nullptr);
  EXPECT_STREQ(cpu_rows().front()->name, "reference");
  EXPECT_STREQ(cpu_rows().back()->name, "amx");
  // Of other bits, and so none of those.
  for (const cpu_row* row : {&amx_tensor, &avx512bf16, &zen4_bf16}) {
    EXPECT_EQ(find_cpu_row(row->name), row);
    EXPECT_EQ(std::ranges::count(cpu_rows(), row), 0);
  }
  EXPECT_TRUE(runs_here(pairs_row()) || !runs_here(avx512bf16));
}

TEST(CpuRows, TheBestRunsHereAndNoneBetterDoes) {
  EXPECT_TRUE(runs_here(*find_cpu_row("reference")));
  EXPECT_TRUE(runs_here(best_cpu_row()));
  bool better = false;
  for (const cpu_row* row : cpu_rows()) {
    if (better) {
      EXPECT_FALSE(runs_here(*row)) << row->name;
    }
    better = better || row == &best_cpu_row();
  }
}

TEST(CpuRows, RefuseARowThatNoBuildHas) {
  cpu_row stranger{.name = "stranger"};
  EXPECT_FALSE(runs_here(stranger));
}

TEST(CpuRows, HaveEveryKernel) {
  for (const cpu_row* row : cpu_rows()) {
    EXPECT_TRUE(row->matmul && row->quantize && row->row_to_float && row->rms_norm && row->rope &&
                row->kv_store && row->attend && row->silu_multiply && row->add && row->add_bias)
        << row->name;
  }
}

/// Lines of `nm` on the object of one row: what it defines for others, weak or not.
std::vector<std::string> exported(const std::string& object) {
  std::vector<std::string> names;
  std::string command = "nm -g --defined-only '" + object + "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  char line[512];
  while (pipe && std::fgets(line, sizeof line, pipe)) {
    std::string text(line);
    names.push_back(text.substr(text.rfind(' ') + 1, text.size() - text.rfind(' ') - 2));
  }
  if (pipe) pclose(pipe);
  return names;
}

// An inline function that such a file defines weakly might be the one the linker keeps, and run
// on a CPU that lacks its instructions.
TEST(CpuRows, DefineNothingButThemselves) {
#ifdef LETHE_SANITIZED
  GTEST_SKIP() << "sanitizers add symbols of their own";
#endif
  auto symbol_of = [](const std::string& row) {
    return "_ZN5lethe" + std::to_string(row.size()) + row + "E";
  };
  using names = std::vector<std::string>;
  for (auto [file, rows] : std::vector<std::pair<std::string, names>>{
           {"reference", {"reference"}},
           {"avx2", {"avx2", "zen3"}},
           {"avxvnni", {"avxvnni"}},
           {"avx512", {"avx512"}},
           {"avx512vnni",
            {"amx_tensor", "avx512bf16", "avx512vnni", "amx", "zen4", "zen4_bf16"}}}) {
    std::string object = std::string(places::kernel_objects) + "/" + file + ".cpp.o";
    std::ranges::transform(rows, rows.begin(), symbol_of);
    EXPECT_EQ(exported(object), rows) << object;
  }
}

}  // namespace
}  // namespace lethe
