#include "parallel/mesh.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace lethe {
namespace {

using clock = std::chrono::steady_clock;

// A round trip between two processes takes 10 to 20 microseconds; who must wait for longer than a
// few of them waits for arithmetic, and may as well sleep.
constexpr auto spin_time = std::chrono::microseconds(100);
// What a rank has not sent when it leaves is an acknowledgement at most.
constexpr auto patience_at_end = std::chrono::milliseconds(100);

}  // namespace

result<std::unique_ptr<mesh>> mesh::make(config c) {
  owned_fd wakes(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wakes.get() < 0)
    return fail("communicator: cannot make an event: {}; raise ulimit -n", std::strerror(errno));
  std::unique_ptr<mesh> m(new mesh(std::move(c), std::move(wakes)));
  try {
    m->pusher_ = std::thread([at = m.get()] { at->push_behind(); });
  } catch (const std::system_error& e) {
    return fail("communicator: cannot start a thread: {}; raise ulimit -u", e.what());
  }
  return m;
}

mesh::mesh(config c, owned_fd wakes)
    : config_(std::move(c)), wakes_(std::move(wakes)), links_(lanes * config_.terms.size) {
  for (auto* list : {&polled_, &writable_}) list->reserve(links_.size() + 1);
}

mesh::~mesh() {
  {
    std::lock_guard lock(mutex_);
    deadline until = clock::now() + patience_at_end;
    while (!why_ && unsent() && clock::now() < until)
      if (!push_all()) sleep(until);
  }
  behind_.abort();
  if (pusher_.joinable()) pusher_.join();
}

std::optional<link>& mesh::slot(uint32_t rank, lane on) {
  check(rank < size());
  return links_[size_t(on) * size() + rank];
}

void mesh::add(uint32_t rank, lane on, link made) {
  std::lock_guard lock(mutex_);
  check(rank != this->rank() && !has(rank, on));
  slot(rank, on).emplace(std::move(made));
}

void mesh::send(uint32_t to, lane on, uint64_t what, bytes_view data) {
  std::lock_guard lock(mutex_);
  if (why_) return;
  link& l = *slot(to, on);
  l.send(what, data);
  l.push();
  look(to, l);
}

void mesh::receive(uint32_t from, lane on, uint64_t what, std::span<std::byte> data) {
  std::lock_guard lock(mutex_);
  if (!why_) slot(from, on)->receive(what, data);
}

void mesh::acknowledge(uint32_t to) {
  std::lock_guard lock(mutex_);
  if (why_) return;
  link& l = *slot(to, lane::calls);
  l.acknowledge();
  l.push();
  look(to, l);
}

void mesh::expect_acknowledgement(uint32_t from) {
  std::lock_guard lock(mutex_);
  if (!why_) slot(from, lane::calls)->expect_acknowledgement();
}

result<void> mesh::wait_sent(uint32_t to, lane on, deadline until) {
  return wait(to, until, [l = &slot(to, on)] { return (*l)->sent(); });
}
result<void> mesh::wait_received(uint32_t from, lane on, deadline until) {
  return wait(from, until, [l = &slot(from, on)] { return (*l)->received(); });
}
result<void> mesh::wait_acknowledged(uint32_t from, deadline until) {
  return wait(from, until, [l = &slot(from, lane::calls)] { return (*l)->acknowledged(); });
}

/// `rank` is the one that is late if nothing comes.
template <class Done>
result<void> mesh::wait(uint32_t rank, deadline until, Done&& done) {
  std::lock_guard lock(mutex_);
  deadline asleep_from = clock::now() + spin_time;
  while (!why_) {
    if (aborted_.load()) end_aborted();
    if (why_ || done()) break;
    bool moved = progress();
    if (why_) continue;
    deadline now = clock::now();
    if (moved) {
      asleep_from = now + spin_time;
      continue;
    }
    if (now >= until) {
      end_by(ending::late, rank);
    } else if (!config_.spin || now >= asleep_from) {
      sleep(until);
    }
  }
  if (why_) return *why_;
  return {};
}

deadline mesh::call_deadline() const {
  if (config_.timeout.count() == 0) return deadline::max();
  return clock::now() + config_.timeout;
}

bool mesh::progress() {
  bool moved = false;
  for (size_t i = 0; i < links_.size() && !why_; ++i) {
    if (!links_[i]) continue;
    moved |= links_[i]->push();
    moved |= links_[i]->pull();
    look(uint32_t(i % size()), *links_[i]);
  }
  return moved;
}

/// Until something can move. Who is gone is asked for a last word.
void mesh::sleep(deadline until) {
  polled_.assign(1, {wakes_.get(), POLLIN, 0});
  for (const auto& l : links_)
    if (l) polled_.push_back({l->events() != 0 ? l->fd() : -1, l->events(), 0});
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
  if (until == deadline::max() || left > std::chrono::hours(1)) left = std::chrono::hours(1);
  if (poll(polled_.data(), polled_.size(), int(std::max<int64_t>(0, left.count()))) <= 0) return;
  for (size_t i = 0, at = 1; i < links_.size() && !why_; ++i) {
    if (!links_[i]) continue;
    short seen = polled_[at++].revents;
    if ((seen & (POLLRDHUP | POLLHUP | POLLERR)) != 0) links_[i]->listen();
    look(uint32_t(i % size()), *links_[i]);
  }
}

bool mesh::push_all() {
  bool moved = false;
  for (size_t i = 0; i < links_.size() && !why_; ++i) {
    if (!links_[i]) continue;
    moved |= links_[i]->push();
    look(uint32_t(i % size()), *links_[i]);
  }
  return moved;
}

bool mesh::unsent() const {
  return std::ranges::any_of(links_, [](const auto& l) { return l && !l->sent(); });
}

void mesh::leave() {
  std::lock_guard lock(mutex_);
  if (!why_ && unsent()) behind_.advance();
}

/// The thread that sends what calls have left.
void mesh::push_behind() {
  for (uint32_t seen = 0; behind_.wait_past(seen, false);) {
    seen = behind_.count();
    do {
      writable_.assign(1, {wakes_.get(), POLLIN, 0});
      std::lock_guard lock(mutex_);
      push_all();
      if (why_) break;
      for (const auto& l : links_)
        if (l && !l->sent()) writable_.push_back({l->fd(), POLLOUT, 0});
    } while (writable_.size() > 1 && !behind_.aborted() &&
             poll(writable_.data(), writable_.size(), 50) >= 0);
  }
}

result<void> mesh::alive() {
  std::lock_guard lock(mutex_);
  if (!why_ && aborted_.load()) end_aborted();
  if (why_) return *why_;
  return {};
}

result<void> mesh::hear() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return {};
  if (!why_ && aborted_.load()) end_aborted();
  if (!why_) sleep(clock::now());
  if (why_) return *why_;
  return {};
}

void mesh::look(uint32_t rank, const link& l) {
  if (l.end() == ending::none || why_) return;
  if (l.heard())
    end_by(*l.heard(), rank);
  else
    end_by(l.end(), rank);
}

/// The first reason stays. Every other rank is told, in case it waits for a third.
void mesh::end_by(last_word word, std::optional<uint32_t> said_by) {
  if (why_) return;
  std::string text = word.text();
  why_ = said_by ? fail("communicator: rank {} says: {}", named(*said_by), text)
                 : fail("communicator: {}", text);
  for (auto& l : links_)
    if (l) l->close(word);
  if (config_.fate) config_.fate->set(word);
}

/// Where another group's end is the reason, that is what is told.
void mesh::end_aborted() {
  last_word first = config_.fate ? config_.fate->get() : last_word{};
  end_by(first.why != ending::none ? first : last_word{ending::aborted, named(rank())}, {});
}

error mesh::refuse(const char* why) {
  std::lock_guard lock(mutex_);
  end_by(ending::differing, rank());
  return fail("communicator: {}; the group is aborted", why);
}

void mesh::abort() {
  aborted_.store(true);
  const uint64_t one = 1;
  check(write(wakes_.get(), &one, sizeof one) == ssize_t(sizeof one) || errno == EAGAIN);
  std::lock_guard lock(mutex_);  // whoever has it wakes and lets go
  end_aborted();
}

}  // namespace lethe
