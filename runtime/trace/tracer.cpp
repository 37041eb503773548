#include "runtime/trace/tracer.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace lethe {

const char* name_of(actor_kind k) {
  constexpr const char* names[] = {"none",   "face",    "scheduler", "directory", "supervisor",
                                   "engine", "request", "gateway",   "service"};
  return size_t(k) < std::size(names) ? names[size_t(k)] : "none";
}

namespace {

constexpr size_t words = sizeof(trace_record) / sizeof(uint64_t);
static_assert(sizeof(trace_record) % sizeof(uint64_t) == 0);

std::atomic<uint64_t> next_serial{1};

}  // namespace

/// Written by one thread, read by others: each slot carries the number of its record before and
/// after its words, so that a torn one shows.
struct tracer::ring {
  struct slot {
    std::atomic<uint64_t> begun{0}, ended{0};
    std::array<std::atomic<uint64_t>, words> data;
  };

  explicit ring(uint32_t n) : slots(n) {}

  void write(const trace_record& r) {
    uint64_t number = written.load(std::memory_order_relaxed) + 1;
    slot& s = slots[number % slots.size()];
    s.begun.store(number, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    auto from = std::bit_cast<std::array<uint64_t, words>>(r);
    for (size_t i = 0; i < words; ++i) s.data[i].store(from[i], std::memory_order_relaxed);
    s.ended.store(number, std::memory_order_release);
    written.store(number, std::memory_order_release);
  }

  bool read(const slot& s, trace_record& into) const {
    uint64_t ended = s.ended.load(std::memory_order_acquire);
    if (ended == 0) return false;
    std::array<uint64_t, words> copy;
    for (size_t i = 0; i < words; ++i) copy[i] = s.data[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (s.begun.load(std::memory_order_relaxed) != ended) return false;
    into = std::bit_cast<trace_record>(copy);
    return true;
  }

  std::vector<slot> slots;
  std::atomic<uint64_t> written{0};
  std::atomic<bool> taken{true};  // by a thread
};

/// A thread's hold on its ring, which may outlive the tracer.
struct tracer::held_ring {
  ~held_ring() { give_back(); }
  void give_back() {
    if (own) own->taken.store(false, std::memory_order_release);
  }
  void take(std::shared_ptr<ring> other) {
    give_back();
    own = std::move(other);
  }

  std::shared_ptr<ring> own;
  uint64_t of = 0;  // the tracer's serial
};

tracer::tracer(tracer_config config)
    : config_(std::move(config)), serial_(next_serial.fetch_add(1)) {
  config_.records = std::max(config_.records, 1u);
}

tracer::~tracer() = default;

uint64_t tracer::steady_now() {
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::steady_clock::now().time_since_epoch())
                      .count());
}

uint64_t tracer::meet(uint64_t theirs) {
  uint64_t own = clock_.load(std::memory_order_relaxed);
  while (own < theirs && !clock_.compare_exchange_weak(own, theirs, std::memory_order_relaxed)) {
  }
  return tick();
}

bool tracer::records(uint64_t type) const {
  if (config_.mode == trace_mode::all) return true;
  return config_.mode == trace_mode::allowed &&
         std::ranges::find(config_.allowed_types, type) != config_.allowed_types.end();
}

tracer::ring& tracer::own_ring() {
  thread_local held_ring held;
  if (held.of == serial_) return *held.own;
  std::lock_guard guard(lock_);
  auto left = std::ranges::find_if(
      rings_, [](const auto& r) { return !r->taken.load(std::memory_order_acquire); });
  if (left == rings_.end()) left = rings_.insert(left, std::make_shared<ring>(config_.records));
  (*left)->taken.store(true, std::memory_order_relaxed);
  held.take(*left);
  held.of = serial_;
  return *held.own;
}

void tracer::dump::keep_newest(size_t most) {
  if (records.size() <= most) return;
  size_t cut = records.size() - most;
  records.erase(records.begin(), records.begin() + ptrdiff_t(cut));
  lost += cut;
}

void tracer::write(const trace_record& r) { own_ring().write(r); }

tracer::dump tracer::read() const {
  dump all;
  std::lock_guard guard(lock_);
  for (const auto& r : rings_) {
    uint64_t before = r->written.load(std::memory_order_acquire), taken = 0;
    for (const auto& s : r->slots) {
      trace_record one;
      if (!r->read(s, one)) continue;
      all.records.push_back(one);
      ++taken;
    }
    all.lost += before > taken ? before - taken : 0;
  }
  std::ranges::sort(all.records, {}, &trace_record::at_ns);
  return all;
}

}  // namespace lethe
