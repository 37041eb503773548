#pragma once

#include <list>
#include <mutex>
#include <thread>

#include "actors/cluster/rank_asks.hpp"
#include "runtime/base/first_error.hpp"

namespace lethe {

/// Where the ranks of an engine come in, each from the host that it was placed on, and find each
/// other. Open as long as the engine is.
class rank_door {
 public:
  struct terms {
    uint16_t slot = 0;
    uint32_t epoch = 0;
    std::vector<std::string> hosts;  // of each rank; the first is this one
    std::string address;             // of this host
  };
  static result<std::unique_ptr<rank_door>> open(terms t, rank_keys keys);
  ~rank_door();
  rank_door(const rank_door&) = delete;

  uint16_t port() const { return port_; }
  /// Drawn anew for each door; whoever comes in is given it.
  key_bytes secret() const { return key_bytes(secret_.view()); }
  /// As the leading rank sees it. Who waits for a rank that has ended is told so.
  rank_store& store() { return store_; }
  void lose(uint32_t rank, const std::string& how);
  /// Nobody comes in any more, and whoever is in is let go of.
  void close();
  result<void> health() const { return store_.health(); }

 private:
  /// Values that nobody needn't wait for once a rank is lost.
  class watched_store final : public rank_store {
   public:
    result<void> set(std::string_view key, bytes_view value) override {
      return values_.set(key, value);
    }
    result<std::vector<std::byte>> get(std::string_view key, deadline until) override;
    void lose(error why) { lost_.set(std::move(why)); }
    result<void> health() const { return lost_.get(); }

   private:
    memory_rank_store values_;
    first_error lost_;
  };
  struct visitor {
    std::optional<rank_claim> is;
    owned_fd handle;  // of its connection, to end it with
    bool gone = false;
    std::thread thread;
  };

  rank_door(terms t, rank_keys keys, owned_fd listener, uint16_t port);
  void let_in();
  bool take_in(owned_fd fd);
  void make_room();
  void serve(visitor& v, owned_fd fd);
  std::string why_not(const rank_claim& claim, const std::string& host) const;

  const terms terms_;
  const rank_keys keys_;
  const owned_fd listener_;
  const uint16_t port_;
  key_bytes secret_;
  watched_store store_;
  std::mutex mutex_;
  bool closing_ = false;
  std::list<visitor> visitors_;
  std::thread thread_;
};

}  // namespace lethe
