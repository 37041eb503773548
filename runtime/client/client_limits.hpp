#pragma once

#include <cstddef>
#include <cstdint>

/// Bounds on what a client keeps and takes in. Each is tested at, above and below.
namespace lethe::limits {

inline constexpr size_t trust_file_bytes_max = 256u << 10;
inline constexpr size_t wallet_tokens_max = 4096;  // 1.4 MB; those that are open count, too
inline constexpr size_t wallet_spends_max = 1024;  // whose fate is not known yet
inline constexpr size_t wallet_journal_bytes = size_t{1} << 20;  // 253 pages of changes
inline constexpr size_t exposed_bodies_max = 1u << 16;
inline constexpr size_t look_bytes_max = 32u << 20;     // a page of the log, a roster
inline constexpr size_t problem_bytes_max = 64u << 10;  // a refusal of the gateway's
inline constexpr size_t answer_fields_max = 64u << 10;
inline constexpr uint32_t look_wait_ms = 15'000;  // for the next word of what is no answer
inline constexpr size_t account_secret_bytes_max = 256;

}  // namespace lethe::limits
