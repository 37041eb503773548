#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>

#include "tests/cuda/emulated_row.hpp"
#include "tests/cuda/guarded.hpp"

/// Runs every check once and prints the bodies that ran, a line each, as nm writes them.
int main() {
  lethe::emulated::machine m;
  for (auto [row, checks] : {std::pair(&lethe::emulated_row, lethe::all_checks()),
                             std::pair(&lethe::emulated_tensor_row, lethe::tensor_checks())}) {
    lethe::target t = lethe::emulated::target_on(*row, m.stream());
    for (const lethe::check& c : checks) {
      // What is only about bits in company runs no other bodies.
      if (c.name.starts_with("tensor_") && c.name.find("_near_") == std::string::npos) continue;
      if (std::string said = c.run(t); !said.empty()) {
        std::printf("%s: %s %s\n", c.name.c_str(), said.c_str(), m.fault().c_str());
        return 1;
      }
    }
  }
  for (std::type_index body : m.ran()) {
    char* name = abi::__cxa_demangle(body.name(), nullptr, nullptr, nullptr);
    std::printf("%s\n", name);
    std::free(name);
  }
}
