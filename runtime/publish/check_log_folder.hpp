#pragma once

#include <filesystem>

#include "runtime/log/signed_head.hpp"

namespace lethe {

/// Where a gateway keeps what it publishes.
struct published_folder {
  std::filesystem::path log, rosters;  // rosters: empty if there are none beside the log

  /// A gateway's folder, or the log's own.
  static result<published_folder> find(const std::filesystem::path& folder);
};

/// What was found right, in order, up to the first thing that is wrong.
struct log_checks {
  struct line {
    std::string what;  // "head", "entries", "checkpoint", "epochs", "contents", "rosters"
    std::string found;
  };
  std::vector<line> good;
  std::optional<error> wrong;
};

/// Everything that the folder claims, against whom `trust` believes: both heads' signatures, the
/// witnesses', the root anew from all entries, their epochs, what each says, and every roster that
/// is there. Reads without the writer's lock. Says nothing of age: a folder may be a copy.
log_checks check_log_folder(const published_folder& folder, const note_trust& trust);

}  // namespace lethe
