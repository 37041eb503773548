#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/unix_time.hpp"
#include "runtime/http/http_server.hpp"
#include "runtime/log/note_key.hpp"

namespace lethe {

namespace limits {
inline constexpr uint32_t witness_waiting_max = 64;  // asks that wait for the disk; more get 503
}

struct witness_config {
  std::vector<http_listener> listen;
  std::filesystem::path folder;
  std::string name;
  std::vector<note_key> logs;
  std::function<uint64_t()> now_s = unix_s;
};

/// What it counts; of asks it keeps only each log's head.
struct witness_numbers {
  uint64_t cosigned = 0;
  uint64_t refused = 0;
  uint64_t failed = 0;  // for a fault of its own
  uint64_t open = 0;
};

/// A witness (runtime/log/witness.hpp) over HTTP: `POST /add-checkpoint`, and `GET /`, which says
/// who it is. Its folder holds its key and the heads that it saw, and is one process's alone.
class witness_server {
 public:
  static result<std::unique_ptr<witness_server>> start(const witness_config& config);
  ~witness_server();  // what was not begun is not answered
  witness_server(const witness_server&) = delete;
  witness_server& operator=(const witness_server&) = delete;

  const std::vector<http_listener>& bound() const;
  witness_numbers numbers() const;
  const note_key& key() const;
  /// The last fault that its operator should know of; empty: none, or it has passed.
  std::string trouble() const;
  /// No new exchanges; those that began go on.
  void stop_accepting();

 private:
  class house;
  explicit witness_server(std::unique_ptr<house> h);
  std::unique_ptr<house> house_;
};

/// The public key of the witness in a folder; made if it is missing.
result<note_key> keep_witness_key(const std::filesystem::path& folder, const std::string& name);

}  // namespace lethe
