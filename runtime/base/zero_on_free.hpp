#pragma once

namespace lethe {

/// Whether all that this process frees is zeroed first: the program links lethe_zero_on_free, and
/// its `free` is the one that every library calls.
bool zeroes_what_it_frees() noexcept;

}  // namespace lethe
