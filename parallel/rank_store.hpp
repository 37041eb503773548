#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

using deadline = std::chrono::steady_clock::time_point;

/// Where the ranks of an epoch find each other before they are connected: small values, each set
/// once. Whoever implements it decides who may take part. It never sees content, nor keys.
class rank_store {
 public:
  static constexpr size_t value_bytes_max = 64 << 10;  // 255 addresses
  virtual ~rank_store() = default;
  virtual result<void> set(std::string_view key, bytes_view value) = 0;
  /// Waits until there is one.
  virtual result<std::vector<std::byte>> get(std::string_view key, deadline until) = 0;
};

/// For ranks of one process, and behind whatever carries the others' calls to it.
class memory_rank_store final : public rank_store {
 public:
  result<void> set(std::string_view key, bytes_view value) override;
  result<std::vector<std::byte>> get(std::string_view key, deadline until) override;

 private:
  static constexpr size_t values_max = 1 << 14;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::byte>, std::less<>> values_;
};

}  // namespace lethe
