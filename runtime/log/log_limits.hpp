#pragma once

#include <cstddef>
#include <cstdint>

/// Bounds on what the log, rosters and policies may be. Each is tested at, above and below.
namespace lethe::limits {

inline constexpr size_t log_entry_bytes_max = 65535;             // a u16 says its length
inline constexpr uint64_t log_entries_max = uint64_t{1} << 24;   // 300 years of ten-minute rosters
inline constexpr size_t log_read_bytes_max = size_t{256} << 20;  // that a client takes in at once
inline constexpr size_t log_note_bytes_max = 16u << 10;
inline constexpr size_t log_signatures_max = 32;
inline constexpr size_t log_signature_bytes_max = 4096;  // ML-DSA-44 has 2,420
inline constexpr size_t log_name_bytes_max = 255;
inline constexpr size_t log_proof_max = 63;
inline constexpr size_t log_witnesses_max = 31;
inline constexpr size_t witness_ask_bytes_max = log_note_bytes_max + log_proof_max * 45 + 32;
inline constexpr uint32_t log_clock_off_max_s = 120;

inline constexpr uint32_t roster_nodes_max = 4096;
inline constexpr size_t roster_word_bytes_max = 64;    // a model class, a kind of evidence
inline constexpr size_t roster_digest_bytes_max = 64;  // of evidence

inline constexpr size_t policy_bytes_max = 16u << 10;
inline constexpr size_t policy_list_max = 64;  // buckets, kinds, classes: each
inline constexpr size_t policy_challenge_bytes_max = 1024;

}  // namespace lethe::limits
