#pragma once

#include <cstddef>
#include <cstdint>

/// Bounds of the durable stores. Each is tested at, above and below.
namespace lethe::limits {

inline constexpr uint32_t spends_waiting_max = 4096;  // 1 MB, and one transaction
inline constexpr uint32_t settles_waiting_max = 65'536;
inline constexpr uint32_t spends_unsure_max = 65'536;  // whose answer a lost connection took along
inline constexpr uint32_t drop_slice_rows = 1000;      // removed between two transactions of others
inline constexpr int shared_store_wait_ms = 10'000;    // for another process's commit
inline constexpr int redis_answer_s = 5;
inline constexpr size_t account_name_max = 64;
inline constexpr size_t redis_password_max = 64;  // as long as what ACL GENPASS makes
inline constexpr size_t key_file_bytes_max = 16'384;

}  // namespace lethe::limits
