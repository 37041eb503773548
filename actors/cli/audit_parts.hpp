#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/audit/finding.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

struct audit_words {
  std::string trust, model = "models/ember", out, controls;
  std::vector<std::string> only;
  bool json = false, quick = false;
};

/// A line a step, to who watches.
class audit_teller {
 public:
  void operator()(const std::string& what) const;
  double seconds() const;

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

/// A part of the audit: what --only calls it, and what it does.
struct audit_part {
  const char* name;
  const char* about;
  result<std::vector<audit::finding>> (*run)(const audit_words&, const audit_teller&);
  bool outside = false;  // of any cluster, by its trust file
};
std::span<const audit_part> audit_parts();

std::filesystem::path audit_controls(const audit_words& words);

}  // namespace lethe
