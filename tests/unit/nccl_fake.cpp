#include "tests/unit/nccl_fake.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "runtime/base/check.hpp"
#include "tests/unit/nccl_fake_state.hpp"

// OpenSSL counts who holds an object by atomics in a library that was not built for the sanitizer:
// when the last of several threads frees a link's cipher, it looks like a race.
extern "C" const char* __tsan_default_suppressions() { return "race:CRYPTO_THREAD_lock_free\n"; }

namespace lethe::testing {
namespace {

size_t bytes_of(nccl_type t) { return t == nccl_type::float32 ? 4 : 2; }

float load(const void* at, size_t i, nccl_type t) {
  if (t == nccl_type::float32) return static_cast<const float*>(at)[i];
  return std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(at)[i]} << 16);
}

void store(void* at, size_t i, nccl_type t, float x) {
  if (t == nccl_type::float32)
    static_cast<float*>(at)[i] = x;
  else
    static_cast<uint16_t*>(at)[i] = uint16_t(std::bit_cast<uint32_t>(x) >> 16);
}

}  // namespace

fake_nccl::fake_nccl(options o) : options_(o) {
  check(current_fake.exchange(this) == nullptr);
  for (uint32_t r = 0; r < 16; ++r) inside_[r] = 0;
}

fake_nccl::~fake_nccl() {
  let_go();
  for (auto& [at, bytes] : memory_) std::free(at);
  current_fake = nullptr;
}

void fake_nccl::inject(nccl_fault f) {
  std::lock_guard lock(mutex_);
  faults_.emplace_back(f, false);
}

bool fake_nccl::all_faults_happened() {
  std::lock_guard lock(mutex_);
  return std::ranges::all_of(faults_, [](const auto& f) { return f.second; });
}

void fake_nccl::lose(uint32_t rank) {
  std::lock_guard lock(mutex_);
  for (auto& m : members_) {
    bool with_it = std::ranges::any_of(
        m->of->members, [rank](member* o) { return o != nullptr && o->world_rank == rank; });
    if (with_it && m->world_rank != rank) m->state = nccl_status::remote_error;
  }
}

void fake_nccl::let_go() {
  std::unique_lock lock(mutex_);
  let_go_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] {
    return std::ranges::all_of(inside_, [](const auto& i) { return i.second == 0; });
  });
}

std::vector<std::string> fake_nccl::misuses() {
  std::lock_guard lock(mutex_);
  return misuses_;
}

fake_nccl::rest fake_nccl::left() {
  std::lock_guard lock(mutex_);
  rest r{0, 0, memory_.size()};
  for (auto& m : members_) {
    r.communicators += !m->gone;
    r.windows += m->windows.size();
  }
  return r;
}

bool fake_nccl::holds(const std::vector<std::byte>& what) {
  std::lock_guard lock(mutex_);
  for (auto& m : members_)
    for (auto& [way, ring] : m->rings)
      for (auto& c : ring.channels)
        if (std::ranges::search(c.bytes, what).size() != 0) return true;
  return false;
}

uint32_t fake_nccl::registrations() {
  std::lock_guard lock(mutex_);
  return registrations_;
}

size_t fake_nccl::given_back_full() {
  std::lock_guard lock(mutex_);
  return given_back_full_;
}

void fake_nccl::serve(void* stream, device_queue q) {
  std::lock_guard lock(mutex_);
  served_[stream].first = std::move(q);
}

nccl_status fake_nccl::note(std::string what) {
  misuses_.push_back(std::move(what));
  return nccl_status::invalid_usage;
}

nccl_fault* fake_nccl::fault_of(uint32_t rank, nccl_call call) {
  for (auto& [f, happened] : faults_) {
    if (happened || f.rank != rank || f.call != call) continue;
    if (f.after-- != 0) continue;
    happened = true;
    return &f;
  }
  return nullptr;
}

/// All parts have come, and each is the next thing that its device has to do.
bool fake_nccl::ready(const operation& op) const {
  return std::ranges::all_of(op.parts, [](const operation::part& p) {
    return p.whose != nullptr && p.batch->stream->order.front() == p.batch;
  });
}

void fake_nccl::progress() {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& op : operations_) {
      if (op->done || !ready(*op)) continue;
      execute(*op);
      moved = true;
    }
    std::erase_if(operations_, [](const auto& op) { return op->done; });
  }
}

void fake_nccl::end_part(operation& op, size_t part) {
  fake_batch& b = *op.parts[part].batch;
  if (--b.left != 0) return;
  std::erase(b.stream->order, &b);
  --b.stream->pending;
}

void fake_nccl::pass(std::map<int, fake_ring>& rings, int way, const void* data, size_t bytes) {
  fake_ring& r = rings[way];
  r.channels.resize(options_.staging.channels);
  size_t used = std::min<size_t>(options_.staging.channels, 1 + bytes / 256);
  for (size_t i = 0; i < used; ++i) {
    auto& c = r.channels[i];
    c.bytes.resize(options_.staging.bytes);
    for (size_t k = bytes * i / used; k < bytes * (i + 1) / used; ++k, ++c.at)
      c.bytes[c.at % c.bytes.size()] = static_cast<const std::byte*>(data)[k];
  }
}

void fake_nccl::execute(operation& op) {
  size_t n = op.parts.size(), size = bytes_of(op.type), block = op.count * size;
  auto& parts = op.parts;
  auto at = [](void* p, size_t offset) { return static_cast<std::byte*>(p) + offset; };
  if (op.what == nccl_call::send) {
    pass(parts[1].whose->rings, op.root, parts[0].from, block);
    std::memmove(parts[1].into, parts[0].from, block);
  } else {
    bool gathers = op.what == nccl_call::all_gather,
         scatters = op.what == nccl_call::reduce_scatter;
    size_t in = scatters ? block * n : block;
    std::vector<std::vector<std::byte>> given;
    for (auto& p : parts) {
      auto* from = static_cast<const std::byte*>(p.from);
      given.emplace_back(from, from + in);
    }
    for (size_t r = 0; r < n; ++r) pass(parts[(r + 1) % n].whose->rings, -1, given[r].data(), in);
    for (size_t r = 0; r < n; ++r) {
      if (op.what == nccl_call::broadcast) {
        std::memcpy(parts[r].into, given[size_t(op.root)].data(), block);
      } else if (gathers) {
        for (size_t k = 0; k < n; ++k)
          std::memcpy(at(parts[r].into, k * block), given[k].data(), block);
      } else {
        size_t first = scatters ? r * op.count : 0;
        for (size_t i = 0; i < op.count; ++i) {
          float sum = load(given[0].data(), first + i, op.type);
          for (size_t k = 1; k < n; ++k) sum += load(given[k].data(), first + i, op.type);
          store(parts[r].into, i, op.type, sum);
        }
      }
    }
  }
  for (size_t p = 0; p < n; ++p) end_part(op, p);
  op.done = true;
}

/// Its kernels end as if they were done; what they belong to never is.
void fake_nccl::drop_operations_of(member& m) {
  for (auto& op : operations_)
    for (size_t p = 0; p < op->parts.size(); ++p)
      if (op->parts[p].whose == &m) {
        end_part(*op, p);
        op->parts[p].whose = nullptr;
      }
}

}  // namespace lethe::testing
