#include "tests/cuda/socket_group.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

namespace lethe::emulated {

/// It listens before it calls anybody: so whoever has all its links knows that all ranks have come.
socket_group::socket_group(std::string folder, int rank, int size)
    : folder_(std::move(folder)), rank_(rank), busy_(busy::forming), peers_(size_t(size)) {
  if (size == 1) return;
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) fail(nccl_status::system_error);
  if (rank == size - 1) return;
  listener_ = listen_on(place_of(rank), size);
  if (listener_.get() < 0) fail(nccl_status::system_error);
}

void socket_group::fail(nccl_status why) {
  nccl_status good = nccl_status::success;
  state_.compare_exchange_strong(good, why);
}

nccl_status socket_group::answer() const {
  if (state_ != nccl_status::success) return state_;
  return busy_ == busy::no ? nccl_status::success : nccl_status::in_progress;
}

nccl_status socket_group::look() {
  std::lock_guard lock(mutex_);
  if (state_ != nccl_status::success) return state_;
  if (busy_ == busy::forming) meet();
  hear_all();
  if (busy_ == busy::splitting) go_on_splitting();
  if (busy_ == busy::leaving && std::ranges::count(peers_, true, &peer::bye) == size() - 1) {
    all_said_bye_ = true;
    busy_ = busy::no;
  }
  return answer();
}

void socket_group::meet() {
  call_lower_ranks();
  let_higher_ranks_in();
  if (!linked()) return;
  leave_folder();
  busy_ = busy::no;
}

bool socket_group::linked() const {
  return std::ranges::count_if(peers_, [](const peer& p) { return p.link.there(); }) == size() - 1;
}

void socket_group::call_lower_ranks() {
  for (int r = 0; r < rank_; ++r) {
    rank_link& link = peers_[size_t(r)].link;
    if (link.there()) continue;
    owned_fd talk = call(place_of(r));
    if (talk.get() < 0) {
      if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN)
        fail(nccl_status::system_error);
      continue;
    }
    auto ends = make_link();
    if (!ends) return fail(nccl_status::system_error);
    tell_one(talk, {packet::hello, rank_}, std::array{(*ends)[1].data.get()});
    link = {std::move(talk), std::move((*ends)[0].data)};
  }
}

void socket_group::let_higher_ranks_in() {
  if (listener_.get() < 0) return;
  for (owned_fd talk = let_in(listener_); talk.get() >= 0; talk = let_in(listener_))
    visitors_.push_back(std::move(talk));
  std::erase_if(visitors_, [this](owned_fd& talk) {
    heard h = hear(talk);
    if (!h.packet) return false;
    auto [what, r, none] = *h.packet;
    bool fits = what == packet::hello && r > rank_ && r < size() && h.with[0].get() >= 0 &&
                !peers_[size_t(r)].link.there();
    if (fits)
      peers_[size_t(r)].link = {std::move(talk), std::move(h.with[0])};
    else
      fail(nccl_status::invalid_usage);
    return true;
  });
}

/// Other ranks may still need theirs; who ends before all have come ends it for all.
void socket_group::leave_folder() {
  if (folder_.empty() || size() == 1) return;
  for (int r = 0; r < size(); ++r)
    if (r == rank_ || !linked()) unlink(place_of(r).c_str());
  rmdir(folder_.c_str());
  listener_ = owned_fd();
}

void socket_group::hear_all() {
  for (peer& p : peers_)
    while (p.link.there() && !p.bye) {
      heard h = hear(p.link.talk);
      if (h.gone) fail(nccl_status::remote_error);
      if (!h.packet) break;
      take(p, std::move(h));
    }
}

void socket_group::take(peer& from, heard h) {
  switch (h.packet->what) {
    case packet::color:
      return from.colors.push_back(*h.packet);
    case packet::link:
      return from.offered.push_back({std::move(h.with[0]), std::move(h.with[1])});
    case packet::bye:
      from.bye = true;
      return;
    case packet::hello:
      return fail(nccl_status::internal_error);
  }
}

void socket_group::tell_one(const owned_fd& talk, const packet& p, std::span<const int> with) {
  told said = tell(talk, p, with);
  if (said == told::gone) fail(nccl_status::remote_error);
  if (said == told::no_room) fail(nccl_status::system_error);
}

void socket_group::tell_all(const packet& p) {
  for (peer& to : peers_)
    if (to.link.there()) tell_one(to.link.talk, p);
}

nccl_status socket_group::split(int color, int key, taker takes) {
  {
    std::lock_guard lock(mutex_);
    if (busy_ != busy::no || all_said_bye_) return nccl_status::invalid_usage;
    busy_ = busy::splitting;
    splitting_ = std::make_unique<splitting>(splitting{color, key, std::move(takes), {}, {}});
    tell_all({packet::color, color, key});
  }
  return look();
}

void socket_group::go_on_splitting() {
  splitting& s = *splitting_;
  if (!s.group) {
    bool all = std::ranges::count_if(peers_, [](const peer& p) { return !p.colors.empty(); }) ==
               size() - 1;
    if (!all) return;
    choose_members();
    offer_links();
  }
  for (size_t there = size_t(s.group->rank()) + 1; there < s.members.size(); ++there) {
    rank_link& link = s.group->peers_[there].link;
    auto& offered = peers_[size_t(s.members[there])].offered;
    if (link.there() || offered.empty()) continue;
    link = std::move(offered.front());
    offered.pop_front();
  }
  if (!s.group->linked()) return;
  s.takes(std::move(s.group));
  splitting_.reset();
  busy_ = busy::no;
}

void socket_group::choose_members() {
  splitting& s = *splitting_;
  std::vector<std::tuple<int, int>> keys{{s.key, rank_}};
  for (int r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    auto& colors = peers_[size_t(r)].colors;
    if (colors.front().first == s.color) keys.emplace_back(colors.front().second, r);
    colors.pop_front();
  }
  std::ranges::sort(keys);
  for (auto [key, r] : keys) s.members.push_back(r);
  auto own = std::ranges::find(s.members, rank_) - s.members.begin();
  s.group.reset(new socket_group(int(own), int(s.members.size())));
}

void socket_group::offer_links() {
  splitting& s = *splitting_;
  for (int there = 0; there < s.group->rank(); ++there) {
    auto ends = make_link();
    if (!ends) return fail(nccl_status::system_error);
    auto& [own, other] = *ends;
    tell_one(peers_[size_t(s.members[size_t(there)])].link.talk, {packet::link},
             std::array{other.talk.get(), other.data.get()});
    s.group->peers_[size_t(there)].link = std::move(own);
  }
}

nccl_status socket_group::finalize() {
  {
    std::lock_guard lock(mutex_);
    if (busy_ != busy::no || all_said_bye_) return nccl_status::invalid_usage;
    busy_ = busy::leaving;
    tell_all({packet::bye});
  }
  return look();
}

/// An exchange lets go of the sockets soon, and asks before it goes on.
void socket_group::end() {
  ended_ = true;
  std::scoped_lock both(mutex_, exchanging_);
  if (busy_ == busy::forming) leave_folder();
  busy_ = busy::no;
  for (peer& p : peers_) p = peer();
  visitors_.clear();
  splitting_.reset();
}

}  // namespace lethe::emulated
