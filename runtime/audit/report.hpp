#pragma once

#include <string>
#include <vector>

#include "runtime/audit/finding.hpp"

namespace lethe::audit {

/// What an audit found, for a reader who was not there.
struct report {
  std::string cluster;  // what was audited
  std::string program;  // its version and digest
  std::string machine, date;
  double seconds = 0;
  std::vector<finding> findings;
  /// What is not counted as a measurement, and why.
  std::vector<std::string> statements;

  /// Every finding stands: the promise held, and each control was found.
  bool stands() const;
  size_t count(verdict v) const;
};

/// A table for a terminal of so many columns.
std::string as_text(const report& r, size_t columns);
std::string as_json(const report& r);
/// One page that needs nothing else: no scripts, no fonts, no pictures from elsewhere.
std::string as_html(const report& r);

/// An SVG picture, in the colours of the page that it stands in.
std::string as_svg(const plot& p);

/// held, BROKEN or not measured.
std::string word_of(verdict v);

}  // namespace lethe::audit
