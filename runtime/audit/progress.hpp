#pragma once

#include <functional>

namespace lethe::audit {

/// Told now and then how much of a measurement is done, from 0 to 1; on any of its threads, one at
/// a time. May be empty.
using progress = std::function<void(double share)>;

}  // namespace lethe::audit
