#include "tests/cuda/machine.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace lethe::emulated {
namespace {

using device::product_type;

/// Number i of a word.
double number_of(product_type t, uint32_t word, uint32_t i) {
  switch (t) {
    case product_type::s8:
    case product_type::s8_half:
      return int8_t(word >> 8 * i);
    case product_type::bf16:
      return device::from_bf16(uint16_t(word >> 16 * i));
    default:
      return device::from_bits(word & ~0x1fffu);
  }
}

/// What the lanes of a warp hold, put together and multiplied. Sums of floats are rounded every
/// four of K, so that they tell which number lies where.
void multiply_parts(machine::factors* const (&lanes)[device::warp_lanes]) {
  const product_type type = lanes[0]->type;
  const auto [depth, n, a_words, b_words] = device::facts_of(type);
  double a[16][32], b[8][32];
  for (uint32_t lane = 0; lane < device::warp_lanes; lane++) {
    uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t i = 0; i < n; i++) {
      for (uint32_t w = 0; w < a_words; w++)
        a[g + w % 2 * 8][w / 2 * 4 * n + n * t + i] = number_of(type, lanes[lane]->a[w], i);
      for (uint32_t w = 0; w < b_words; w++)
        b[g][w * 4 * n + n * t + i] = number_of(type, lanes[lane]->b[w], i);
    }
  }
  bool whole = type <= product_type::s8_half;
  for (uint32_t lane = 0; lane < device::warp_lanes; lane++) {
    for (uint32_t i = 0; i < 4; i++) {
      uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      uint32_t& c = lanes[lane]->c[i];
      double sum = whole ? double(int32_t(c)) : double(device::from_bits(c));
      for (uint32_t k = 0; k < depth; k++) {
        sum += a[row][k] * b[column][k];
        if (!whole && k % 4 == 3) sum = float(sum);
      }
      c = whole ? uint32_t(int32_t(sum)) : device::bits_of(float(sum));
    }
  }
}

}  // namespace

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
  threads_.assign(threads, {});
  shared_.assign(shared_words, {});
  copies_.assign(threads, {});
  epoch_ = 1;
  fibers_.begin(threads, std::move(job));
  while (run_turns(turns_of(threads)) && release(threads)) {
  }
  for (const thread_copies& c : copies_)
    if (!c.asked.empty())
      note("a copy that nobody waited for", c.asked[0].at.file_name(), c.asked[0].at.line());
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
    auto lanes = std::ranges::find_if(threads_, [](const thread_state& t) {
      return t.waits == wait_for::shuffle || t.waits == wait_for::product;
    });
    const thread_state& t = lanes == threads_.end() ? *first : *lanes;
    note(t.waits == wait_for::shuffle   ? "a shuffle without all lanes"
         : t.waits == wait_for::product ? "a product without all lanes"
                                        : "a barrier without all threads",
         t.file, t.line);
    return false;
  }
  epoch_++;
  for (thread_state& t : threads_) t.waits = wait_for::turn;
  return true;
}

/// Shuffles and products of warps whose lanes are all there, at the same place.
bool machine::release_warps(uint32_t threads) {
  constexpr uint32_t lanes = device::warp_lanes;
  bool any = false;
  for (uint32_t w = 0; w + lanes <= threads; w += lanes) any |= release_warp(&threads_[w]);
  return any;
}

bool machine::release_warp(thread_state* warp) {
  constexpr uint32_t lanes = device::warp_lanes;
  bool product = warp->waits == wait_for::product;
  bool all = std::all_of(warp, warp + lanes, [&](const thread_state& t) {
    return t.waits == (product ? wait_for::product : wait_for::shuffle) && t.line == warp->line &&
           t.file == warp->file && t.mask == warp->mask && t.part.type == warp->part.type;
  });
  if (!all) return false;
  if (product) {
    factors* parts[lanes];
    for (uint32_t i = 0; i < lanes; i++) parts[i] = &warp[i].part;
    multiply_parts(parts);
  } else {
    uint32_t values[lanes];
    for (uint32_t i = 0; i < lanes; i++) values[i] = warp[i].value;
    for (uint32_t i = 0; i < lanes; i++) warp[i].value = values[i ^ warp[i].mask];
  }
  for (uint32_t i = 0; i < lanes; i++) warp[i].waits = wait_for::turn;
  return true;
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

machine::factors machine::multiply(uint32_t thread, const factors& f, std::source_location at) {
  threads_[thread].part = f;
  wait(thread, wait_for::product, at);
  return threads_[thread].part;
}

uint32_t machine::read(uint32_t thread, uint32_t i, std::source_location at) {
  if (i >= shared_.size()) stop("a shared word that the launch does not have", at);
  shared_word& w = shared_[i];
  if (w.copied) stop("a shared word that is being copied", at);
  if (!w.written) stop("a shared word that nobody has written", at);
  if (w.write_epoch == epoch_ && w.writer != thread)
    stop("a shared word that another thread has written since the last barrier", at);
  w.read_by_many = w.read_epoch == epoch_ && (w.read_by_many || w.reader != thread);
  w.read_epoch = epoch_;
  w.reader = thread;
  return w.value;
}

machine::shared_word& machine::for_writing(uint32_t thread, uint32_t i, std::source_location at) {
  if (i >= shared_.size()) stop("a shared word that the launch does not have", at);
  shared_word& w = shared_[i];
  if (w.copied) stop("a shared word that is being copied", at);
  if (w.written && w.write_epoch == epoch_ && w.writer != thread)
    stop("a shared word that another thread has written since the last barrier", at);
  if (w.read_epoch == epoch_ && (w.read_by_many || w.reader != thread))
    stop("a shared word that another thread has read since the last barrier", at);
  w.writer = thread;
  w.write_epoch = epoch_;
  return w;
}

void machine::write(uint32_t thread, uint32_t i, uint32_t value, std::source_location at) {
  shared_word& w = for_writing(thread, i, at);
  w.value = value;
  w.written = true;
}

void machine::copy(uint32_t thread, asked_copy c) {
  if (c.word % c.count != 0 || reinterpret_cast<uintptr_t>(c.from) % (4 * c.count) != 0)
    stop("a copy that is not aligned to its size", c.at);
  for (uint32_t j = 0; j < c.count; j++) for_writing(thread, c.word + j, c.at).copied = true;
  thread_copies& own = copies_[thread];
  c.batch = own.batch;
  own.asked.push_back(c);
}

void machine::finish_copies(uint32_t thread, uint32_t but) {
  thread_copies& own = copies_[thread];
  std::erase_if(own.asked, [&](const asked_copy& c) {
    if (c.batch + but >= own.batch) return false;
    for (uint32_t j = 0; j < c.count; j++) {
      shared_word& w = shared_[c.word + j];
      w.value = device::load<uint32_t>(static_cast<const uint32_t*>(c.from) + j);
      w.written = true;
      w.copied = false;
      w.write_epoch = epoch_;
    }
    return true;
  });
}

}  // namespace lethe::emulated
