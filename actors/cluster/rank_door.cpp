#include "actors/cluster/rank_door.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/crypto/random.hpp"

namespace lethe {

namespace {

using steady = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_again{20};
constexpr size_t strangers_max = 16;  // who have not said yet which rank they are

uint16_t port_of(int listener) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(at).sin6_port
                                        : reinterpret_cast<sockaddr_in&>(at).sin_port);
}

result<owned_fd> listen_at(const std::string& address) {
  addrinfo hints{.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), "0", &hints, &found) != 0)
    return fail("ranks: there is no address {}; see [[hosts]] address", address);
  owned_fd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool good = ::bind(fd.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                    ::listen(fd.get(), SOMAXCONN) == 0;
  ::freeaddrinfo(found);
  if (!good)
    return fail("ranks: cannot listen at {}: {}; see [[hosts]] address", address,
                std::strerror(errno));
  return fd;
}

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
  auto listener = listen_at(t.address);
  if (!listener) return listener.why();
  return std::unique_ptr<rank_door>(
      new rank_door(std::move(t), std::move(keys), *std::move(listener)));
}

rank_door::rank_door(terms t, rank_keys keys, owned_fd listener)
    : terms_(std::move(t)),
      keys_(std::move(keys)),
      listener_(std::move(listener)),
      port_(port_of(listener_.get())),
      secret_(rank_secret_bytes) {
  fill_random(secret_.bytes());
  thread_ = std::thread([this] { let_in(); });
}

void rank_door::close() {
  std::lock_guard lock(mutex_);
  closing_ = true;
  for (auto& v : visitors_) ::shutdown(v.handle.get(), SHUT_RDWR);
  ::shutdown(listener_.get(), SHUT_RDWR);
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
    owned_fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    make_room();
    std::lock_guard lock(mutex_);
    if (closing_) return;
    if (fd.get() < 0) {
      std::this_thread::sleep_for(look_again);  // out of descriptors, for now
      continue;
    }
    auto& v = visitors_.emplace_back();
    v.handle = owned_fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    v.thread = std::thread([this, &v, fd = std::move(fd)]() mutable { serve(v, std::move(fd)); });
  }
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
