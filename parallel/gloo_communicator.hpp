#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "parallel/communicator.hpp"
#include "parallel/rank_store.hpp"
#include "runtime/base/bytes.hpp"
#include "runtime/crypto/key_bytes.hpp"

namespace lethe {

class group_fate;

struct gloo_config {
  uint64_t epoch = 0;  // of the membership; a group that died is made anew in another one
  std::string group;   // which of the epoch's groups: "world", "tensor 0"
  uint32_t rank = 0, size = 1;
  key_bytes secret;                   // of the epoch, 32 random bytes; only its ranks have it
  std::string address = "127.0.0.1";  // of this host, where the other ranks reach it
  /// Nobody but the ranks sees the links: frames go as they are. The ranks prove the secret anyway.
  bool protected_link = false;
  /// Of each call. A rank that does not answer for so long ends the group. 0: wait for ever.
  std::chrono::milliseconds timeout{30'000};
  std::chrono::milliseconds forming{30'000};  // until all ranks have joined
  /// Wait busily for a moment before sleeping; not with more ranks and threads than cores.
  bool spin = false;
  uint32_t first_rank = 0;  // what errors call rank 0, where a group is a part of another
  /// Shared by groups that end together: those that are aborted say what ended the first.
  std::shared_ptr<group_fate> fate;
};

/// A group whose ranks are processes, of one host or of several. Gloo joins them; frames go over
/// links of ours (gloo_transport.hpp) and are sealed. Sums are added in the same tree as those of
/// threads. What others sent to be added lies in `scratch` and is wiped with the group, or earlier.
class gloo_communicator final : public communicator {
 public:
  static result<std::unique_ptr<gloo_communicator>> join(gloo_config config, rank_store& store);
  ~gloo_communicator() override;

  uint32_t rank() const override;
  uint32_t size() const override;
  result<void> all_reduce(std::span<float> data) override;
  result<void> all_gather(std::span<float> all, std::span<const extent> parts) override;
  result<void> reduce_scatter(std::span<float> data, std::span<const extent> parts) override;
  result<void> broadcast(std::span<std::byte> data, uint32_t root) override;
  result<void> send(std::span<const std::byte> data, uint32_t to) override;
  result<void> recv(std::span<std::byte> data, uint32_t from) override;
  result<void> flush() override;
  result<void> barrier() override;
  void abort() override;
  result<void> health() override;
  void wipe() override;

  /// For tests and the audit.
  bytes_view scratch() const;

 private:
  struct parts;
  explicit gloo_communicator(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

}  // namespace lethe
