#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.hpp"

// What keeps others out of a process that keeps promises. Programs under a sanitizer need what
// this takes away, so there it does nothing.
namespace lethe {

/// Before anything secret is there: no core dumps, no debugger and no /proc/PID/mem for anyone
/// without CAP_SYS_PTRACE.
result<void> refuse_dumps();

/// Leaves only the environment's variables that this program knows. Names of the loader's that were
/// set are returned: what they had loaded runs in this process.
std::vector<std::string> close_environment();

/// No capability is left to the calling thread. For who tries what anybody of its user may:
/// callable between fork and exec.
bool give_up_capabilities();

/// Whether the kernel can filter calls; to be known before anyone is served.
result<void> can_filter_calls();

enum class new_code { refused, allowed };

/// For all threads and for ever: no calls that look into processes or change the kernel. With
/// new_code::refused no executable memory comes into being and no program is started any more; what
/// would be loaded when first used (name services) is loaded here before.
result<void> filter_calls(new_code code);

struct locked_memory {
  uint64_t locked = 0, left = 0;  // bytes; `left` can be swapped
};

/// Locks the heaps and stacks, where keys are, whatever has come of them so far, page by page as
/// they are used; request arenas and pages lock themselves, weights never. Best effort.
locked_memory lock_heaps();

}  // namespace lethe
