#pragma once

#include <gtest/gtest.h>

#include "runtime/config/check_config.hpp"
#include "tests/places.hpp"

namespace lethe::testing {

inline const std::string tiny = std::string(places::source) + "/models/tiny";
inline const std::string model_line = "[model]\npath = \"" + tiny + "\"\n";

/// A cluster file in a folder of its own.
class config_file {
 public:
  explicit config_file(const std::string& text) {
    std::string name = (std::filesystem::temp_directory_path() / "lethe-config-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    FILE* f = std::fopen(path().c_str(), "w");
    std::fwrite(text.data(), 1, text.size(), f);
    std::fclose(f);
  }
  config_file(const config_file&) = delete;
  config_file& operator=(const config_file&) = delete;
  ~config_file() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::filesystem::path path() const { return folder_ / "c.toml"; }

 private:
  std::filesystem::path folder_;
};

constexpr machine eight_cores{.cores = 8, .memory = uint64_t{32} << 30};

inline checked_config check(const std::string& text, const machine& here = eight_cores) {
  return check_config(config_file(text).path(), here);
}

/// All problems in one text, "c.toml:LINE: ..." a line.
inline std::string problems(const checked_config& c) {
  std::string all;
  for (const auto& p : c.config.problems()) all += p.substr(p.find("c.toml")) + "\n";
  return all;
}

inline void refuses(const std::string& text, const std::vector<std::string>& says) {
  auto found = problems(check(text));
  for (const auto& word : says) EXPECT_NE(found.find(word), found.npos) << found << "no " << word;
}

}  // namespace lethe::testing
