#pragma once

#include <map>
#include <set>

#include "actors/sim/mailbox.hpp"

namespace lethe::sim {

/// The hosts' links to the leader: who lives behind which, and what comes through. Actors that live
/// behind none are the leader's.
class links {
 public:
  /// `cut`: hosts whose link is down; others may read it.
  explicit links(std::set<std::string>& cut) : cut_(cut) {}

  void settle(const caf::actor& who, const std::string& host);
  /// Its new requests live where it does.
  void settle_requests_of(caf::actor_id engine, const std::deque<caf::resumable*>& jobs);

  /// What waits with an actor by then has come; `jobs` are all who have something waiting.
  void cut(const std::string& host, const std::deque<caf::resumable*>& jobs);
  bool is_cut(const std::string& host) const { return cut_.contains(host); }
  /// What was held comes, in its order.
  void mend(const std::string& host, const std::deque<caf::resumable*>& jobs);
  /// Nothing comes any more from those that live there now, or to them: they are returned.
  std::vector<caf::actor_addr> sever(const std::string& host);

  /// Takes out of a mailbox what the links did not let through, before its actor takes one.
  void sieve(caf::scheduled_actor& who);
  /// What waits with it since then, but for its own messages, has come.
  void took(caf::scheduled_actor& who);

 private:
  struct resident {
    caf::actor_addr address;
    std::string host;
    bool severed = false;
  };
  struct parcel {
    std::string host;
    caf::strong_actor_ptr to;
    caf::mailbox_element_ptr letter;
  };
  /// How many letters of a mailbox, the first ones, are known to have come.
  struct arrivals {
    size_t urgent = 0, normal = 0;
  };
  const resident* across(caf::actor_id from, caf::actor_id to) const;
  template <class Queue>
  size_t sieve(Queue& queue, caf::scheduled_actor& who, size_t arrived);
  arrivals sieve_all(caf::scheduled_actor& who);
  void sieve_everybody(const std::deque<caf::resumable*>& jobs);

  std::set<std::string>& cut_;
  std::map<caf::actor_id, resident> residents_;  // the dead, too: news of them is on its way
  std::map<caf::actor_id, arrivals> arrived_;
  std::deque<parcel> held_;
  caf::actor_id newest_request_ = 0;
  bool ever_severed_ = false;
};

}  // namespace lethe::sim
