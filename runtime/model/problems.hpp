#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/result.hpp"

namespace lethe {

/// Everything that is wrong with a model, each one line; `lethe model inspect` prints them all.
using problem_list = std::vector<std::string>;

inline constexpr size_t problems_max = 100;

template <class... Args>
void note(problem_list& problems, fmt::format_string<Args...> format, Args&&... args) {
  if (problems.size() < problems_max)
    problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  else if (problems.size() == problems_max)
    problems.push_back("and more, not listed");
}

/// The first problem, and how many more there are.
inline error first_of(const problem_list& problems) {
  check(!problems.empty());
  if (problems.size() == 1) return {problems[0]};
  return fail("{} (and {} more; `lethe model inspect` lists them)", problems[0],
              problems.size() - 1);
}

}  // namespace lethe
