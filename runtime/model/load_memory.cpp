#include "runtime/model/load_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "runtime/base/check.hpp"

namespace lethe {
namespace {

constexpr uintptr_t rounded_up(uintptr_t n, size_t to) { return (n + to - 1) / to * to; }

/// Where a huge page of the file can be one of addresses.
result<std::byte*> map(int fd, size_t bytes, int protection) {
  constexpr size_t page = 4096;
  const size_t whole = rounded_up(bytes, page), reserved = whole + huge_page;
  void* room =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return fail("weights: cannot map {} bytes: {}", bytes, std::strerror(errno));
  const auto begin = reinterpret_cast<uintptr_t>(room), at = rounded_up(begin, huge_page);
  const auto end = begin + reserved;
  if (at > begin) munmap(room, at - begin);
  if (end > at + whole) munmap(reinterpret_cast<void*>(at + whole), end - at - whole);
  void* made = mmap(reinterpret_cast<void*>(at), bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0);
  if (made != MAP_FAILED) return static_cast<std::byte*>(made);
  const int why = errno;
  munmap(reinterpret_cast<void*>(at), whole);
  return fail("weights: cannot map {} bytes: {}", bytes, std::strerror(why));
}

}  // namespace

result<sealed_memory> sealed_memory::make(uint64_t bytes) {
  check(bytes > 0);
  sealed_memory made;
  made.fd_ = memfd_create("lethe-weights", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made.fd_ < 0) return fail("weights: memfd_create: {}", std::strerror(errno));
  if (ftruncate(made.fd_, off_t(bytes)) != 0) {
    return fail("weights: cannot make a memfd of {} bytes: {}", bytes, std::strerror(errno));
  }
  auto at = map(made.fd_, bytes, PROT_READ | PROT_WRITE);
  if (!at) return at.why();
  made.at_ = *at;
  made.bytes_ = bytes;
  return made;
}

result<sealed_memory> sealed_memory::attach(int fd, uint64_t bytes) {
  sealed_memory made;
  made.fd_ = fd;
  made.bytes_ = bytes;
  made.sealed_ = true;
  struct stat file {};
  constexpr int needed = F_SEAL_WRITE | F_SEAL_SHRINK;
  if (fstat(fd, &file) != 0 || uint64_t(file.st_size) != bytes ||
      (fcntl(fd, F_GET_SEALS) & needed) != needed)
    return fail("weights: descriptor {} is no sealed memory of {} bytes", fd, bytes);
  auto at = map(fd, bytes, PROT_READ);
  if (!at) return at.why();
  made.at_ = *at;
  return made;
}

sealed_memory::sealed_memory(sealed_memory&& o) noexcept
    : fd_(std::exchange(o.fd_, -1)),
      at_(std::exchange(o.at_, nullptr)),
      bytes_(std::exchange(o.bytes_, 0)),
      sealed_(o.sealed_) {}

sealed_memory& sealed_memory::operator=(sealed_memory&& o) noexcept {
  std::swap(fd_, o.fd_);
  std::swap(at_, o.at_);
  std::swap(bytes_, o.bytes_);
  std::swap(sealed_, o.sealed_);
  return *this;
}

sealed_memory::~sealed_memory() {
  if (at_) munmap(at_, bytes_);
  if (fd_ >= 0) close(fd_);
}

std::span<std::byte> sealed_memory::writable() noexcept {
  check(!sealed_);
  return {at_, bytes_};
}

result<void> sealed_memory::seal() {
  check(!sealed_);
  // The write seal is refused as long as a writable mapping lives.
  munmap(std::exchange(at_, nullptr), bytes_);
  sealed_ = true;
  if (fcntl(fd_, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail("weights: cannot seal the memfd: {}", std::strerror(errno));
  }
  auto at = map(fd_, bytes_, PROT_READ);
  if (!at) return at.why();
  at_ = *at;
  return {};
}

result<reserved_addresses> reserved_addresses::make(uint64_t bytes) {
  constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* at = mmap(nullptr, bytes, PROT_NONE, how, -1, 0);
  if (at == MAP_FAILED)
    return fail("weights: no {} bytes of addresses: {}", bytes, std::strerror(errno));
  return reserved_addresses(static_cast<std::byte*>(at), bytes);
}

reserved_addresses::reserved_addresses(reserved_addresses&& o) noexcept
    : at_(std::exchange(o.at_, nullptr)), bytes_(o.bytes_) {}

reserved_addresses& reserved_addresses::operator=(reserved_addresses o) noexcept {
  std::swap(at_, o.at_);
  std::swap(bytes_, o.bytes_);
  return *this;
}

reserved_addresses::~reserved_addresses() {
  if (at_) munmap(at_, bytes_);
}

std::optional<uint64_t> available_in(std::string_view meminfo) {
  constexpr std::string_view key = "MemAvailable:";
  size_t line = meminfo.find(key);
  if (line == meminfo.npos) return {};
  std::string_view rest = meminfo.substr(line + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  uint64_t kib = 0;
  auto read = std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  if (read.ec != std::errc() || kib > UINT64_MAX / 1024) return {};
  return kib * 1024;
}

result<void> check_memory(uint64_t needed, std::string_view meminfo) {
  auto available = available_in(meminfo);
  if (!available || needed <= *available) return {};
  return fail("weights: {} bytes are needed, {} are available; take a smaller model or --quant",
              needed, *available);
}

}  // namespace lethe
