#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// Of those that the kernel makes of small ones.
inline constexpr size_t huge_page = size_t{2} << 20;
/// Linux 6.1's MADV_COLLAPSE, which Debian 12's C library has no name for.
inline constexpr int madvise_collapse = 25;

/// Anonymous shared memory behind a descriptor: written once, then sealed, so that neither we nor
/// any process that maps it can change it. It begins at an address where a huge page can.
class sealed_memory {
 public:
  static result<sealed_memory> make(uint64_t bytes);
  /// What another process has sealed; `fd` is ours from here on.
  static result<sealed_memory> attach(int fd, uint64_t bytes);
  sealed_memory(sealed_memory&& o) noexcept;
  sealed_memory& operator=(sealed_memory&& o) noexcept;
  ~sealed_memory();

  int fd() const noexcept { return fd_; }
  bytes_view bytes() const noexcept { return {at_, bytes_}; }
  /// Only before `seal`.
  std::span<std::byte> writable() noexcept;
  /// Maps the same bytes anew, for reading.
  result<void> seal();

 private:
  sealed_memory() = default;
  int fd_ = -1;
  std::byte* at_ = nullptr;
  size_t bytes_ = 0;
  bool sealed_ = false;
};

/// Addresses without memory: who reads there ends by it.
class reserved_addresses {
 public:
  static result<reserved_addresses> make(uint64_t bytes);
  reserved_addresses(reserved_addresses&& o) noexcept;
  reserved_addresses& operator=(reserved_addresses o) noexcept;
  ~reserved_addresses();

  const std::byte* begin() const noexcept { return at_; }

 private:
  reserved_addresses(std::byte* at, size_t bytes) : at_(at), bytes_(bytes) {}
  std::byte* at_;
  size_t bytes_;
};

/// The host's MemAvailable, from the text of /proc/meminfo; nothing if it does not say.
std::optional<uint64_t> available_in(std::string_view meminfo);

/// Refuses what would not fit, before the kernel ends some process for it.
result<void> check_memory(uint64_t needed, std::string_view meminfo);

}  // namespace lethe
