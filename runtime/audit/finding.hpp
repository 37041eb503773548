#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lethe::audit {

/// What became of a promise when it was measured.
enum class verdict { held, broken, not_measured };

/// The same measurement with one defence switched off; `found` is whether it noticed.
struct control {
  std::string without, measured;
  bool found = false;
};

/// For a reader who would rather look: curves or bars over numbers.
struct curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};
struct plot {
  std::string title, x, y;
  std::vector<curve> curves;
  bool bars = false, log_x = false, log_y = false;
};

/// One line of the report: a promise (S, T, E, P or V; docs/DESIGN.md section 2) and the attacks
/// on it (A1 to A10), what was measured and what it had to stay within. Each text is one line.
struct finding {
  std::string promise, attacks, what, measured, bound;
  verdict said = verdict::not_measured;
  std::vector<control> controls;
  std::vector<plot> plots;
  std::string note;  // what a reader should know besides; why it wasn't measured

  /// Held, and each control was found.
  bool stands() const {
    for (const auto& c : controls)
      if (!c.found) return false;
    return said == verdict::held;
  }
};

}  // namespace lethe::audit
