#include "parallel/nccl_session.hpp"

#include <algorithm>

#include "runtime/base/wipe.hpp"

namespace lethe {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// NCCL sets up a connection in milliseconds; a device is done in tens of microseconds.
constexpr microseconds pause_first{20}, pause_for_nccl{1000}, pause_for_device{40};
// What a rank without memory tells the others.
constexpr uint64_t none = UINT64_MAX;

void sleep_longer(microseconds& pause, microseconds most) {
  std::this_thread::sleep_for(pause);
  pause = std::min(pause * 2, most);
}

/// Nothing blocks, and no group's abort reaches another group.
nccl_setup setup_of(const nccl_config& c) {
  nccl_setup s;
  s.blocking = 0;
  s.split_share = 0;
  s.channels_min = s.channels_max = int(c.pins.staging.channels);
  return s;
}

/// Of windows NCCL says success and still goes on; only the group's state tells when it is done.
nccl_status told_by_state(nccl_status said) {
  return said == nccl_status::success ? nccl_status::in_progress : said;
}

bool all_equal(std::span<const uint64_t> all, uint64_t to) {
  return std::ranges::all_of(all, [to](uint64_t each) { return each == to; });
}

}  // namespace

/// NCCL goes on with a call in a thread of its own: until it says so, nothing else may be called.
result<void> nccl_session::settle(std::chrono::milliseconds most, nccl_call what, group on,
                                  nccl_status said) {
  auto until = clock::now() + most;
  for (microseconds pause = pause_first; said == nccl_status::in_progress;) {
    if (clock::now() >= until)
      return end({ending::nccl_late, config_.rank, uint32_t(most.count()), uint8_t(what)});
    sleep_longer(pause, pause_for_nccl);
    if (auto alive = control_->health(); !alive) heard(alive.why());
    inside in(*this);
    if (!in) return health();
    said = state_of(on);
  }
  if (said == nccl_status::success) return {};
  return end({ending::nccl_failed, config_.rank, uint32_t(said), uint8_t(what)});
}

/// A group that is not ready yet is the world, or being split from it: the world says how it goes.
nccl_status nccl_session::state_of(group g) const {
  nccl_comm asked = ready_[g] != nullptr ? ready_[g] : made_[world];
  nccl_status state = nccl_status::internal_error;
  if (asked == nullptr) return state;
  nccl_status answered = library_.async_error(asked, &state);
  return answered == nccl_status::success ? state : answered;
}

/// NCCL reads files with its first group, and writes into the environment what they say.
result<void> nccl_session::form() {
  if (auto closed = see_environment(); !closed) return closed;
  if (auto formed = form_groups(); !formed) return formed;
  return see_environment();
}

result<void> nccl_session::see_environment() {
  auto closed = check_nccl_environment(config_.pins);
  if (!closed) heard(closed.why());
  return closed;
}

/// The id goes over sealed links of this epoch: whoever reads it could take a rank's place.
result<void> nccl_session::form_groups() {
  nccl_id id{};
  if (config_.rank == 0) {
    auto made = run(nccl_call::get_unique_id, world, [&] { return library_.get_unique_id(&id); });
    if (!made) return made;
  }
  auto told = control_->broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
  if (!told) return heard(told.why()), health();
  nccl_setup setup = setup_of(config_);
  auto joined = run_for(config_.forming, nccl_call::init, world, [&] {
    return library_.init(&made_[world], int(size()), id, int(config_.rank), &setup);
  });
  wipe(&id, sizeof id);
  if (!joined) return joined;
  {
    inside in(*this);
    if (!in) return health();
    ready_[world] = made_[world];
  }
  auto [t, p] = config_.ranks;
  if (t == 1 || p == 1) return {};
  uint32_t stage = config_.rank / t, tensor_rank = config_.rank % t;
  if (auto made = split(tensor, stage, tensor_rank); !made) return made;
  return split(pipeline, tensor_rank, stage);
}

/// Of all ranks of the world. In a grid each is in one group of each kind, and none outside.
result<void> nccl_session::split(group into, uint32_t color, uint32_t key) {
  nccl_setup setup = setup_of(config_);
  auto made = run_for(config_.forming, nccl_call::split, world, [&] {
    return library_.split(ready_[world], int(color), int(key), &made_[into], &setup);
  });
  if (!made) return made;
  inside in(*this);
  if (in) ready_[into] = made_[into];
  return health();
}

/// Everyone's number, to everyone.
result<std::vector<uint64_t>> nccl_session::tell_all(uint64_t mine) {
  std::vector<uint64_t> all(size(), mine);
  for (uint32_t r = 0; r < size(); ++r) {
    auto told = control_->broadcast(std::as_writable_bytes(std::span(&all[r], 1)), r);
    if (!told) return heard(told.why()), told.why();
  }
  return all;
}

result<nccl_memory> nccl_session::allocate(size_t bytes) {
  constexpr size_t page = nccl_window_alignment;
  uint64_t pages = (bytes + page - 1) / page;
  nccl_memory m{.bytes = pages * page};
  auto asked = run(nccl_call::mem_alloc, world, [&] {
    if (library_.mem_alloc(&m.at, m.bytes) != nccl_status::success) m.at = nullptr;
    if (m.at != nullptr) memory_.push_back(m.at);
    return nccl_status::success;  // too little memory is no end
  });
  if (!asked) return asked.why();
  auto all = tell_all(m.at != nullptr ? pages : none);
  if (!all) return all.why();
  if (auto without = std::ranges::find(*all, none); without != all->end()) {
    if (auto back = give_back(m.at); !back) return back.why();
    return fail("communicator: rank {}'s GPU has no {} bytes left; lower pages or step tokens",
                without - all->begin(), m.bytes);
  }
  if (!all_equal(*all, pages)) return refuse("allocate: ranks differ in size");
  auto registered = register_all(m);
  if (!registered) return registered.why();
  m.registered = *registered;
  if (!m.registered) m.why_not = "NCCL registers no memory between these devices";
  return m;
}

result<void> nccl_session::give_back(void* memory) {
  if (memory == nullptr) return {};
  return run(nccl_call::mem_free, world, [&] {
    std::erase(memory_, memory);
    return library_.mem_free(memory);
  });
}

/// Each rank's memory with each group, or nowhere: ranks must not differ in what NCCL may do.
result<bool> nccl_session::register_all(const nccl_memory& m) {
  size_t first = windows_.size();
  bool mine = true;
  for (group g : {world, tensor, pipeline}) {
    if (ready_[g] == nullptr) continue;
    registration& r = windows_.emplace_back(g, nullptr);
    auto done = run(nccl_call::window_register, g, [&] {
      return told_by_state(
          library_.window_register(ready_[g], m.at, m.bytes, &r.window, nccl_window_symmetric));
    });
    if (!done) return done.why();
    mine = mine && r.window != nullptr;
  }
  auto all = tell_all(mine ? 1 : 0);
  if (!all) return all.why();
  if (all_equal(*all, 1)) return true;
  if (auto undone = deregister_from(first); !undone) return undone.why();
  return false;
}

result<void> nccl_session::deregister_from(size_t first) {
  for (; windows_.size() > first; windows_.pop_back()) {
    registration r = windows_.back();
    if (r.window == nullptr) continue;
    auto done = run(nccl_call::window_deregister, r.on, [&] {
      return told_by_state(library_.window_deregister(ready_[r.on], r.window));
    });
    if (!done) return done;
  }
  return {};
}

/// A kernel of NCCL that is aborted ends as if it were done: whoever waits for one asks NCCL, too.
result<void> nccl_session::wait(const std::function<bool()>& done) {
  auto until = clock::now() + config_.timeout;
  microseconds pause = pause_first;
  while (!ended_.load() && !done()) {
    if (clock::now() >= until)
      end({ending::nccl_late, config_.rank, uint32_t(config_.timeout.count()),
           uint8_t(nccl_call::work)});
    sleep_longer(pause, pause_for_device);
  }
  if (inside in(*this); in) look_at_groups();
  if (!ended_.load()) return {};
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, config_.timeout, [this] { return buried_; });
  return health();
}

error nccl_session::refuse(const char* why) {
  end({ending::differing, config_.rank});
  return fail("communicator: {}; the group is aborted", why);
}

void nccl_session::abort() {
  last_word first = config_.fate ? config_.fate->get() : last_word{};
  end(first.why != ending::none ? first : last_word{ending::aborted, config_.rank});
}

}  // namespace lethe
