#include "tests/cuda/machine.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace lethe::emulated {

std::vector<uint32_t> machine::turns_of(uint32_t count) {
  std::vector<uint32_t> turns(count);
  std::iota(turns.begin(), turns.end(), 0u);
  if (order_ == order::backwards) std::reverse(turns.begin(), turns.end());
  if (order_ == order::shuffled) std::shuffle(turns.begin(), turns.end(), std::mt19937(seed_++));
  return turns;
}

void machine::note(const std::string& what, const char* file, uint32_t line) {
  const char* slash = std::strrchr(file, '/');
  if (fault_.empty())
    fault_ = what + " at " + (slash ? slash + 1 : file) + ":" + std::to_string(line);
}

/// By a thread, which never gets another turn: nothing of it may be left to free.
void machine::stop(const char* what, std::source_location at) {
  note(what, at.file_name(), at.line());
  for (;;) fibers_.give_way();
}

bool machine::run_block(uint32_t threads, uint32_t shared_words,
                        std::function<void(uint32_t)> job) {
  threads_.assign(threads, {wait_for::turn, nullptr, 0, 0, 0});
  shared_.assign(shared_words, {});
  epoch_ = 1;
  fibers_.begin(threads, std::move(job));
  while (run_turns(turns_of(threads)) && release(threads)) {
  }
  if (!fault_.empty()) fibers_.abandon();
  return fault_.empty();
}

bool machine::run_turns(const std::vector<uint32_t>& turns) {
  for (uint32_t thread : turns) {
    if (threads_[thread].waits != wait_for::turn) continue;
    if (fibers_.resume(thread)) threads_[thread].waits = wait_for::nothing;
    if (!fault_.empty()) return false;
  }
  return true;
}

/// Lets those go on that all wait for; false at the block's end, good or bad.
bool machine::release(uint32_t threads) {
  if (release_warps(threads)) return true;
  auto first = std::ranges::find_if(
      threads_, [](const thread_state& t) { return t.waits != wait_for::nothing; });
  if (first == threads_.end()) return false;
  bool barrier = std::ranges::all_of(threads_, [&](const thread_state& t) {
    return t.waits == wait_for::barrier && t.line == first->line && t.file == first->file;
  });
  if (!barrier) {
    auto shuffles = std::ranges::find(threads_, wait_for::shuffle, &thread_state::waits);
    const thread_state& t = shuffles == threads_.end() ? *first : *shuffles;
    note(t.waits == wait_for::shuffle ? "a shuffle without all lanes"
                                      : "a barrier without all threads",
         t.file, t.line);
    return false;
  }
  epoch_++;
  for (thread_state& t : threads_) t.waits = wait_for::turn;
  return true;
}

/// Shuffles of warps whose lanes are all there, at the same place.
bool machine::release_warps(uint32_t threads) {
  constexpr uint32_t lanes = device::warp_lanes;
  bool any = false;
  for (uint32_t w = 0; w + lanes <= threads; w += lanes) {
    thread_state* warp = &threads_[w];
    bool all = std::all_of(warp, warp + lanes, [&](const thread_state& t) {
      return t.waits == wait_for::shuffle && t.line == warp->line && t.file == warp->file &&
             t.mask == warp->mask;
    });
    if (!all) continue;
    uint32_t values[lanes];
    for (uint32_t i = 0; i < lanes; i++) values[i] = warp[i].value;
    for (uint32_t i = 0; i < lanes; i++) {
      warp[i].value = values[i ^ warp[i].mask];
      warp[i].waits = wait_for::turn;
    }
    any = true;
  }
  return any;
}

void machine::wait(uint32_t thread, wait_for what, std::source_location at) {
  threads_[thread].waits = what;
  threads_[thread].file = at.file_name();
  threads_[thread].line = at.line();
  fibers_.give_way();
}

uint32_t machine::shuffle(uint32_t thread, uint32_t value, uint32_t mask, std::source_location at) {
  if (mask >= device::warp_lanes) stop("a shuffle with a lane of another warp", at);
  threads_[thread].value = value;
  threads_[thread].mask = mask;
  wait(thread, wait_for::shuffle, at);
  return threads_[thread].value;
}

uint32_t machine::read(uint32_t thread, uint32_t i, std::source_location at) {
  if (i >= shared_.size()) stop("a shared word that the launch does not have", at);
  shared_word& w = shared_[i];
  if (!w.written) stop("a shared word that nobody has written", at);
  if (w.write_epoch == epoch_ && w.writer != thread)
    stop("a shared word that another thread has written since the last barrier", at);
  w.read_by_many = w.read_epoch == epoch_ && (w.read_by_many || w.reader != thread);
  w.read_epoch = epoch_;
  w.reader = thread;
  return w.value;
}

void machine::write(uint32_t thread, uint32_t i, uint32_t value, std::source_location at) {
  if (i >= shared_.size()) stop("a shared word that the launch does not have", at);
  shared_word& w = shared_[i];
  if (w.written && w.write_epoch == epoch_ && w.writer != thread)
    stop("a shared word that another thread has written since the last barrier", at);
  if (w.read_epoch == epoch_ && (w.read_by_many || w.reader != thread))
    stop("a shared word that another thread has read since the last barrier", at);
  w.value = value;
  w.writer = thread;
  w.write_epoch = epoch_;
  w.written = true;
}

}  // namespace lethe::emulated
