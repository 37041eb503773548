#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "parallel/nccl_abi.hpp"
#include "tests/cuda/socket_link.hpp"

namespace lethe::emulated {

/// One rank's end of a group, with a link to every other rank. What takes until others come goes
/// on when it is looked at. One thread at a time makes calls; another may be at an exchange.
class socket_group {
 public:
  using taker = std::function<void(std::shared_ptr<socket_group>)>;

  /// Ranks meet in a folder, which the first makes and the last removes.
  socket_group(std::string folder, int rank, int size);
  socket_group(const socket_group&) = delete;
  ~socket_group() { end(); }

  int rank() const { return rank_; }
  int size() const { return int(peers_.size()); }

  /// Goes on with what is in progress. An error stays.
  nccl_status look();
  /// On all ranks. Those of a color form a group, by key.
  nccl_status split(int color, int key, taker takes);
  /// On all ranks; whoever leaves afterwards is no loss.
  nccl_status finalize();
  bool finalized() const { return all_said_bye_; }

  /// From any thread: whoever is at an exchange leaves it, and the other ranks hear of it.
  void end();
  bool ended() const { return ended_; }

  nccl_status state() const { return state_; }
  void fail(nccl_status why);

  /// Held while an exchange uses the sockets.
  std::mutex& exchanging() { return exchanging_; }
  int data_of(int rank) const { return peers_[size_t(rank)].link.data.get(); }

 private:
  struct peer {
    rank_link link;
    std::deque<packet> colors;      // of splits, in their order
    std::deque<rank_link> offered;  // of groups that are split off
    bool bye = false;
  };
  struct splitting {
    int color, key;
    taker takes;
    std::vector<int> members;             // ranks here, by their rank there; once all have come
    std::shared_ptr<socket_group> group;  // links of higher ranks are still to come
  };
  enum class busy { no, forming, splitting, leaving };

  socket_group(int rank, int size) : rank_(rank), busy_(busy::no), peers_(size_t(size)) {}

  std::string place_of(int rank) const { return folder_ + "/" + std::to_string(rank); }
  nccl_status answer() const;
  void meet();
  void call_lower_ranks();
  void let_higher_ranks_in();
  void leave_folder();
  bool linked() const;
  void hear_all();
  void take(peer& from, heard h);
  void tell_all(const packet& p);
  void tell_one(const owned_fd& talk, const packet& p, std::span<const int> with = {});
  void go_on_splitting();
  void choose_members();
  void offer_links();

  const std::string folder_;
  const int rank_;
  std::atomic<nccl_status> state_ = nccl_status::success;
  std::atomic<bool> ended_ = false, all_said_bye_ = false;

  std::mutex mutex_;
  busy busy_;
  owned_fd listener_;
  std::vector<owned_fd> visitors_;  // who have not said yet which rank they are
  std::unique_ptr<splitting> splitting_;
  std::mutex exchanging_;
  std::vector<peer> peers_;  // by rank; once linked, changed under both
};

}  // namespace lethe::emulated
