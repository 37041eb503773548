#pragma once

#include <filesystem>

#include "runtime/audit/memory_scan.hpp"
#include "runtime/base/result.hpp"

namespace lethe::audit {

/// Words that are nowhere else, drawn anew for each search, and requests made of them.
class canary {
 public:
  static result<canary> draw(const std::filesystem::path& model);

  /// Each way in which they may lie in memory.
  const std::vector<needle>& needles() const { return needles_; }
  /// A chat that asks about them; `more` are further fields: `,"stream":true`.
  std::string body(const std::string& more = {}) const;
  /// Of each kind that has code of its own: streams, choices, stop texts, forms, tools.
  std::vector<std::string> answered() const;
  /// Refused, early or late.
  std::vector<std::string> refused() const;
  /// Takes long enough to be interrupted.
  std::string endless() const;

 private:
  std::string dog_, cat_, long_, prompt_;
  std::vector<needle> needles_;
};

}  // namespace lethe::audit
