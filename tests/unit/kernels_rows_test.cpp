#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
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

/// f(line) for all that `command` says of the object of one row.
template <class F>
void for_lines_of(const std::string& command, const std::string& row, F f) {
  std::string object = std::string(places::kernel_objects) + "/" + row + ".cpp.o";
  FILE* pipe = popen((command + " '" + object + "' 2>&1").c_str(), "r");
  char line[4096];
  while (pipe && std::fgets(line, sizeof line, pipe)) f(std::string_view(line));
  if (pipe) pclose(pipe);
}

/// What it defines for others, weak or not.
std::vector<std::string> exported(const std::string& row) {
  std::vector<std::string> names;
  for_lines_of("nm -g --defined-only", row, [&](std::string_view text) {
    names.emplace_back(text.substr(text.rfind(' ') + 1, text.size() - text.rfind(' ') - 2));
  });
  return names;
}

/// Whether a line of `objdump` has registers or an encoding that came with AVX-512.
bool is_of_avx512(std::string_view line) {
  line = line.substr(0, line.find('<'));
  if (line.find("%zmm") != line.npos || line.find("%k") != line.npos) return true;
  for (size_t at = line.find("mm"); at != line.npos; at = line.find("mm", at + 2))
    if (std::atoi(std::string(line.substr(at + 2, 2)).c_str()) >= 16) return true;
  return line.find("vpdpbusd") != line.npos && line.find("{vex}") == line.npos;
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
    std::ranges::transform(rows, rows.begin(), symbol_of);
    EXPECT_EQ(exported(file), rows) << file;
  }
}

// Assemblers prefer AVX-512's encoding, which runs where these tests do and not where it has to.
TEST(CpuRows, WithoutAvx512HaveNothingOfIt) {
  EXPECT_TRUE(is_of_avx512("  12:\tvpdpbusd %ymm5,%ymm12,%ymm9\n"));
  EXPECT_TRUE(is_of_avx512("  12:\tvpaddd %xmm5,%xmm16,%xmm9\n"));
  EXPECT_FALSE(is_of_avx512("  12:\t{vex} vpdpbusd %ymm5,%ymm12,%ymm15\n"));
  for (const char* file : {"avx2", "avxvnni"}) {
    size_t products = 0, lines = 0;
    for_lines_of("objdump -d --no-show-raw-insn", file, [&](std::string_view line) {
      EXPECT_FALSE(is_of_avx512(line)) << file << ": " << line;
      products += line.find("vpdpbusd") != line.npos;
      lines++;
    });
    EXPECT_GT(lines, 10'000u) << file;
    EXPECT_EQ(products > 0, std::string_view(file) == "avxvnni") << file;
  }
}

}  // namespace
}  // namespace lethe
