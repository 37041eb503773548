#pragma once

#include <csignal>

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/owned_fd.hpp"
#include "runtime/base/result.hpp"

// This program as another process: what a parent gives its child, and hears of it at its end.

namespace lethe {

/// Descriptors of a child: its order, in whose place it leaves its last words, and a pipe that ends
/// when its parent does. One of its own may follow.
inline constexpr int order_fd = 3, life_fd = 4, first_own_fd = 5;

/// Those bytes behind a descriptor.
result<owned_fd> order_in_memory(const std::vector<std::byte>& frame);
/// Starts this program with those words. It has `order` and `own` as its descriptors, ends with
/// this process, and is deaf to the terminal's Ctrl-C.
result<int> start_child(const std::vector<std::string>& words, int order,
                        std::optional<int> own = {});
/// Waits until that child has ended; it stays a zombie, so that nobody else gets its number.
siginfo_t await_end(int child);
/// By what it left in its order's place, if it did.
std::string how_it_ended(const siginfo_t& info, int order);

// In the child:

/// The order; empty if there is none.
std::vector<std::byte> read_order(size_t bytes_max);
/// Ends this process as soon as its parent has ended.
void end_with_parent();
/// Why this process ends. Its parent reads it however the network fares.
void leave_last_words(const std::string& why);

}  // namespace lethe
