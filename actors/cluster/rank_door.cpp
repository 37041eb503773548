#include "actors/cluster/rank_door.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "parallel/link_address.hpp"
#include "runtime/crypto/random.hpp"

namespace lethe {

namespace {

using steady = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_again{20};
constexpr size_t strangers_max = 16;  // who have not said yet which rank they are

}  // namespace

result<std::vector<std::byte>> rank_door::watched_store::get(std::string_view key, deadline until) {
  for (;;) {
    const auto now = steady::now();
    auto value = values_.get(key, std::min(until, now + look_again));
    if (value || now >= until) return value;
    if (auto lost = lost_.get(); !lost) return lost.why();
  }
}

result<std::unique_ptr<rank_door>> rank_door::open(terms t, rank_keys keys) {
  auto numeric = numeric_address(t.address);
  if (!numeric) return numeric.why();
  auto at = link_address::parse(*numeric, 0);
  if (!at) return at.why();
  auto listener = listen_at(*at);
  if (!listener) return listener.why();
  return std::unique_ptr<rank_door>(
      new rank_door(std::move(t), std::move(keys), *std::move(listener), at->port()));
}

rank_door::rank_door(terms t, rank_keys keys, owned_fd listener, uint16_t port)
    : terms_(std::move(t)),
      keys_(std::move(keys)),
      listener_(std::move(listener)),
      port_(port),
      secret_(rank_secret_bytes) {
  fill_random(secret_.bytes());
  thread_ = std::thread([this] { let_in(); });
}

void rank_door::close() {
  std::lock_guard lock(mutex_);
  closing_ = true;
  for (auto& v : visitors_) ::shutdown(v.handle.get(), SHUT_RDWR);
  ::shutdown(listener_.get(), SHUT_RDWR);
  store_.lose(fail("ranks: the engine ends"));
}

rank_door::~rank_door() {
  close();
  thread_.join();
  for (auto& v : visitors_) v.thread.join();
}

void rank_door::lose(uint32_t rank, const std::string& how) {
  store_.lose(fail("rank {}: {}", rank, how));
}

void rank_door::let_in() {
  for (;;) {
    pollfd knock{.fd = listener_.get(), .events = POLLIN};
    ::poll(&knock, 1, -1);
    owned_fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    make_room();
    if (!take_in(std::move(fd))) return;
  }
}

/// False: nobody else comes in.
bool rank_door::take_in(owned_fd fd) {
  std::unique_lock lock(mutex_);
  if (closing_) return false;
  if (fd.get() < 0) {
    lock.unlock();
    std::this_thread::sleep_for(
        look_again);  // whoever knocked has left, or descriptors have run out
    return true;
  }
  auto& v = visitors_.emplace_back();
  v.handle = owned_fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  v.thread = std::thread([this, &v, fd = std::move(fd)]() mutable { serve(v, std::move(fd)); });
  return true;
}

/// Who says nothing keeps nobody out.
void rank_door::make_room() {
  std::list<visitor> left;
  {
    std::lock_guard lock(mutex_);
    for (auto at = visitors_.begin(); at != visitors_.end();) {
      auto next = std::next(at);
      if (at->gone) left.splice(left.end(), visitors_, at);
      at = next;
    }
    auto is_stranger = [](const visitor& v) { return !v.is; };
    if (std::ranges::count_if(visitors_, is_stranger) >= ptrdiff_t(strangers_max))
      ::shutdown(std::ranges::find_if(visitors_, is_stranger)->handle.get(), SHUT_RDWR);
  }
  for (auto& v : left) v.thread.join();
}

void rank_door::serve(visitor& v, owned_fd fd) {
  auto line = rank_line::greet(std::move(fd), keys_, false);
  auto claim = line ? hear_claim(*line) : std::nullopt;
  std::string refused;
  if (claim) {
    std::lock_guard lock(mutex_);
    refused = why_not(*claim, line->host());
    if (refused.empty()) v.is = claim;
  }
  if (!refused.empty()) refuse_claim(*line, refused);
  std::string words;
  if (v.is && grant_claim(*line, secret_)) words = answer_rank(*line, store_);
  if (v.is) lose(v.is->rank, words.empty() ? "its process ended" : words);
  std::lock_guard lock(mutex_);
  v.gone = true;
  v.handle = owned_fd();  // it would keep the connection open
}

/// With the lock.
std::string rank_door::why_not(const rank_claim& claim, const std::string& host) const {
  if (claim.slot != terms_.slot || claim.epoch != terms_.epoch)
    return fmt::format("ranks: here is engine {} in epoch {}, not {} in {}", terms_.slot,
                       terms_.epoch, claim.slot, claim.epoch);
  if (claim.rank == 0 || claim.rank >= terms_.hosts.size() || terms_.hosts[claim.rank] != host)
    return fmt::format("ranks: rank {} is not on host {}", claim.rank, host);
  const bool here = std::ranges::any_of(
      visitors_, [&](const visitor& v) { return v.is && v.is->rank == claim.rank; });
  return here ? fmt::format("ranks: rank {} has come already", claim.rank) : "";
}

}  // namespace lethe
