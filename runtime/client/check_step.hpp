#pragma once

#include <functional>
#include <string>

namespace lethe {

/// Something that a client checked, or did, for who asks to see. It names no content.
struct check_step {
  std::string
      name;  // "gateway keys", "log head", "logged keys", "shape", "crowd", "roster",
             // "exposure", "draw", "token", "seal", "answer", "receipt", "refusal", "change"
  bool ok = true;
  std::string detail;
};

/// Told as it happens, on the asker's thread.
using call_observer = std::function<void(const check_step&)>;

}  // namespace lethe
