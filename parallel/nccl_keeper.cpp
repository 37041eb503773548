#include <algorithm>
#include <system_error>

#include "parallel/nccl_session.hpp"

// How a session ends: the part of it that its keeper does, and those who wait for that.

namespace lethe {
namespace {

using clock = std::chrono::steady_clock;

int64_t now_ns() { return clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

// Until whoever is inside NCCL has left: the keeper's look takes less.
constexpr std::chrono::microseconds pause{20};
// A group that was split off goes before the one that it was split from.
constexpr auto children_first = {nccl_session::pipeline, nccl_session::tensor, nccl_session::world};

}  // namespace

nccl_session::inside::inside(nccl_session& s) : session_(s) {
  while (!s.ended_.load() && !is_) {
    is_ = s.inside_.try_lock();
    if (!is_) std::this_thread::sleep_for(pause);
  }
  // What has ended may be gone by the time that the lock is had.
  if (is_ && s.ended_.load()) is_ = false, s.inside_.unlock();
  if (is_) s.inside_since_ = now_ns();
}

nccl_session::inside::inside(nccl_session& s, std::adopt_lock_t) : session_(s), is_(true) {
  s.inside_since_ = now_ns();
}

nccl_session::inside::~inside() {
  if (!is_) return;
  session_.inside_since_ = 0;
  session_.inside_.unlock();
}

result<std::shared_ptr<nccl_session>> nccl_session::start(nccl_config c, const nccl_functions& f,
                                                          std::unique_ptr<communicator> control) {
  std::shared_ptr<nccl_session> s(new nccl_session(std::move(c), f, std::move(control)));
  try {
    s->keeper_ = std::thread([s] { s->keep(); });
  } catch (const std::system_error& e) {
    return fail("communicator: cannot start a thread: {}; raise ulimit -u", e.what());
  }
  return s;
}

/// The first reason stays, here and, by the control group, everywhere.
error nccl_session::end(last_word word) {
  why_.set(fail("communicator: {}", word.text()));
  if (config_.fate) config_.fate->set(word);
  end_now();
  return why_.get().why();
}

void nccl_session::heard(error why) {
  why_.set(std::move(why));
  end_now();
}

void nccl_session::end_now() {
  if (ended_.exchange(true)) return;
  control_->abort();
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool nccl_session::held_too_long() const {
  int64_t since = inside_since_;
  return since != 0 && std::chrono::nanoseconds(now_ns() - since) > config_.timeout;
}

void nccl_session::tell_stuck() {
  end({ending::nccl_late, config_.rank, uint32_t(config_.timeout.count()), uint8_t(what_.load())});
  if (stuck_.exchange(true) || !config_.stuck) return;
  config_.stuck(fail("communicator: NCCL does not come back from {} on rank {}; end this process",
                     name_of(what_), config_.rank));
}

void nccl_session::keep() {
  std::unique_lock lock(mutex_);
  while (!closing_ && !ended_.load()) {
    lock.unlock();
    look();
    lock.lock();
    changed_.wait_for(lock, config_.beat, [this] { return closing_ || ended_.load(); });
  }
  lock.unlock();
  if (ended_.load() || !leave()) bury();
  lock.lock();
  buried_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return closing_; });
  lock.unlock();
  free_memory();
  lock.lock();
  over_ = true;
  changed_.notify_all();
}

/// A call that does not come back is one that nobody can abort.
void nccl_session::look() {
  if (auto alive = control_->health(); !alive) return heard(alive.why());
  if (held_too_long()) return tell_stuck();
  if (!inside_.try_lock()) return;
  inside in(*this, std::adopt_lock);
  look_at_groups();
}

void nccl_session::look_at_groups() {
  for (group g : children_first) {
    if (ready_[g] == nullptr) continue;
    nccl_status state = state_of(g);
    if (state != nccl_status::success && state != nccl_status::in_progress)
      end({ending::nccl_failed, config_.rank, uint32_t(state), uint8_t(what_.load())});
  }
}

/// Nobody leaves before all do, and goes before all are done: they would take it for a loss.
result<void> nccl_session::leave() {
  if (auto all = control_->barrier(); !all) return heard(all.why()), all;
  if (auto done = deregister_from(0); !done) return done;
  for (group g : children_first) {
    if (ready_[g] == nullptr) continue;
    auto done = run(nccl_call::finalize, g, [&] { return library_.finalize(ready_[g]); });
    if (!done) return done;
  }
  for (group g : children_first) {
    if (ready_[g] == nullptr) continue;
    auto done = run(nccl_call::destroy, g, [&] {
      made_[g] = nullptr;  // whatever comes of it, it is not there any more
      return library_.destroy(ready_[g]);
    });
    if (!done) return done;
  }
  auto all = control_->barrier();
  if (!all) heard(all.why());
  return all;
}

/// Waits for whoever is inside NCCL, without end: there is no other way.
void nccl_session::bury() {
  while (!inside_.try_lock()) {
    if (held_too_long()) tell_stuck();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  inside in(*this, std::adopt_lock);
  abort_all();
}

/// As one: a kernel of one group may wait on this device behind that of another. What is being
/// split off stands still once the world is aborted, and may have come to be just before.
void nccl_session::abort_all() {
  what_ = nccl_call::abort;
  library_.group_start();
  bool all = true;
  for (group g : {world, tensor, pipeline})
    if (made_[g] != nullptr) all &= library_.abort(made_[g]) == nccl_status::success;
  all &= library_.group_end() == nccl_status::success;
  made_ = {};
  if (!all) tell_stuck();
}

/// Not where NCCL may still use it.
void nccl_session::free_memory() {
  if (stuck_) return;
  std::lock_guard lock(inside_);
  for (void* at : memory_) library_.mem_free(at);
  memory_.clear();
}

result<void> nccl_session::close() {
  if (!keeper_.joinable()) return health();
  std::unique_lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
  while (!over_ && !stuck_) {
    changed_.wait_for(lock, config_.beat);
    lock.unlock();
    if (held_too_long()) tell_stuck();
    lock.lock();
  }
  bool over = over_;
  lock.unlock();
  over ? keeper_.join() : keeper_.detach();
  return health();
}

}  // namespace lethe
