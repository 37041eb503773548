#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/problems.hpp"

namespace lethe {

/// What is wrong with the tensors of one model. A model has hundreds of them, and one mistake
/// repeats in every layer, so equal faults are one line: the first tensor, and how many more.
class tensor_faults {
 public:
  /// `fault` reads on after the name: "is missing". Tensors that differ in numbers only (their
  /// layer, their expert) count as one name; with `any_name`, all do.
  void add(std::string_view where, std::string_view tensor, std::string fault,
           bool any_name = false);
  /// In the order in which they were first added.
  void report(problem_list& problems) const;

 private:
  struct entry {
    std::string text;
    size_t more = 0;
  };
  std::vector<entry> entries_;
  std::map<std::string, size_t> index_;  // of what makes faults equal
};

}  // namespace lethe
