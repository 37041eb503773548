#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <source_location>
#include <string>
#include <typeindex>
#include <vector>

#include "kernels/cuda/cuda_row.hpp"
#include "kernels/cuda/simt.hpp"
#include "tests/cuda/fibers.hpp"

namespace lethe::emulated {

/// In which order threads of a block, and blocks, get their turns. What a kernel computes must not
/// depend on it.
enum class order { forwards, backwards, shuffled };

/// A block that runs on the CPU, thread after thread, and stops at what a GPU would leave
/// undefined: barriers, shuffles and products that not all threads come to, shared words outside of
/// the launch's, read before they were written, touched by two threads with no barrier between, or
/// while they are being copied. A copy is made as late as may be: when it is waited for.
class machine {
 public:
  explicit machine(order o = order::forwards, uint32_t seed = 1) : order_(o), seed_(seed) {}

  /// As the stream of a launch.
  device_stream stream() { return reinterpret_cast<device_stream>(this); }
  static machine& of(device_stream s) { return *reinterpret_cast<machine*>(s); }

  /// What went wrong first; empty if nothing did.
  const std::string& fault() const { return fault_; }
  /// The bodies that ran, each to its end.
  const std::set<std::type_index>& ran() const { return ran_; }

  /// Runs it, or puts it behind what `defer` was given.
  template <class Body>
  device_error launch(const Body& body);
  using calls = std::vector<std::function<device_error()>>;
  /// Where launches go instead of being run; null: nowhere.
  void defer(calls* later) { later_ = later; }
  /// Puts a call where launches go.
  device_error put(std::function<device_error()> call) {
    if (later_ == nullptr) return call();
    later_->push_back(std::move(call));
    return 0;
  }

  struct place {
    uint32_t x, y, thread;
  };
  /// What a lane has of a product: its words of rows, columns and sums.
  struct factors {
    device::product_type type;
    uint32_t a[4], b[2], c[4];
  };
  /// A body's block, as one thread sees it (simt.hpp).
  class block {
   public:
    using site = std::source_location;
    block(machine& m, place p) : machine_(m), place_(p) {}
    uint32_t x() const { return place_.x; }
    uint32_t y() const { return place_.y; }
    uint32_t thread() const { return place_.thread; }
    void barrier(site at = site::current()) { machine_.wait(place_.thread, wait_for::barrier, at); }
    uint32_t shuffle_xor(uint32_t v, uint32_t mask, site at = site::current()) {
      return machine_.shuffle(place_.thread, v, mask, at);
    }
    int32_t shuffle_xor(int32_t v, uint32_t mask, site at = site::current()) {
      return int32_t(machine_.shuffle(place_.thread, uint32_t(v), mask, at));
    }
    float shuffle_xor(float v, uint32_t mask, site at = site::current()) {
      return device::from_bits(machine_.shuffle(place_.thread, device::bits_of(v), mask, at));
    }
    template <device::product_type T>
    device::product_sums<T> multiply(const device::product_rows<T>& a,
                                     const device::product_columns<T>& b, device::product_sums<T> c,
                                     site at = site::current()) {
      factors f{T, {}, {}, {}};
      std::memcpy(f.a, a.a, sizeof a.a);
      std::memcpy(f.b, b.b, sizeof b.b);
      std::memcpy(f.c, c.c, sizeof c.c);
      f = machine_.multiply(place_.thread, f, at);
      std::memcpy(c.c, f.c, sizeof c.c);
      return c;
    }
    uint32_t get_word(uint32_t i, site at = site::current()) const {
      return machine_.read(place_.thread, i, at);
    }
    void put_word(uint32_t i, uint32_t v, site at = site::current()) {
      machine_.write(place_.thread, i, v, at);
    }
    float get(uint32_t i, site at = site::current()) const {
      return device::from_bits(get_word(i, at));
    }
    void put(uint32_t i, float v, site at = site::current()) {
      put_word(i, device::bits_of(v), at);
    }
    device::two_words get_two(uint32_t i, site at = site::current()) const {
      if (i % 2 != 0) machine_.stop("shared words that are not aligned to two", at);
      return {{get_word(i, at), get_word(i + 1, at)}};
    }
    device::four_words get_four(uint32_t i, site at = site::current()) const {
      if (i % 4 != 0) machine_.stop("shared words that are not aligned to four", at);
      return {{get_word(i, at), get_word(i + 1, at), get_word(i + 2, at), get_word(i + 3, at)}};
    }
    void copy_four(uint32_t i, const void* from, site at = site::current()) {
      machine_.copy(place_.thread, {i, 4, 0, from, at});
    }
    void copy_word(uint32_t i, const void* from, site at = site::current()) {
      machine_.copy(place_.thread, {i, 1, 0, from, at});
    }
    void copies_asked() { machine_.copies_[place_.thread].batch++; }
    template <uint32_t but>
    void copies_there() {
      machine_.finish_copies(place_.thread, but);
    }

   private:
    machine& machine_;
    place place_;
  };

 private:
  enum class wait_for : uint8_t { turn, barrier, shuffle, product, nothing };
  struct thread_state {
    wait_for waits;
    const char* file;  // where it waits
    uint32_t line;
    uint32_t value, mask;  // of a shuffle
    factors part;          // of a product
  };
  /// Who touched a shared word since the barrier that began `epoch`.
  struct shared_word {
    uint32_t value = 0, writer = 0, reader = 0;
    uint32_t write_epoch = 0, read_epoch = 0;
    bool written = false, read_by_many = false, copied = false;  // being copied
  };
  struct asked_copy {
    uint32_t word, count, batch;
    const void* from;
    std::source_location at;
  };
  struct thread_copies {
    std::vector<asked_copy> asked;  // and not there
    uint32_t batch = 0;             // of what is asked for next
  };

  template <class Body>
  device_error run(const Body& body);
  bool run_block(uint32_t threads, uint32_t shared_words, std::function<void(uint32_t)> job);
  bool run_turns(const std::vector<uint32_t>& turns);
  bool release(uint32_t threads);
  bool release_warps(uint32_t threads);
  static bool release_warp(thread_state* warp);
  std::vector<uint32_t> turns_of(uint32_t count);
  void wait(uint32_t thread, wait_for what, std::source_location at);
  uint32_t shuffle(uint32_t thread, uint32_t value, uint32_t mask, std::source_location at);
  factors multiply(uint32_t thread, const factors& f, std::source_location at);
  uint32_t read(uint32_t thread, uint32_t i, std::source_location at);
  shared_word& for_writing(uint32_t thread, uint32_t i, std::source_location at);
  void write(uint32_t thread, uint32_t i, uint32_t value, std::source_location at);
  void copy(uint32_t thread, asked_copy c);
  void finish_copies(uint32_t thread, uint32_t but);
  [[noreturn]] void stop(const char* what, std::source_location at);
  void note(const std::string& what, const char* file, uint32_t line);

  const order order_;
  uint32_t seed_;
  std::string fault_;
  std::set<std::type_index> ran_;
  fibers fibers_;
  calls* later_ = nullptr;
  std::vector<thread_state> threads_;
  std::vector<shared_word> shared_;
  std::vector<thread_copies> copies_;
  uint32_t epoch_ = 0;
};

/// As CUDA numbers them.
inline constexpr device_error launch_failed = 719, invalid_value = 1, not_ready = 600;
inline constexpr uint32_t shared_bytes_max = device::shared_words_most * 4;

template <class Body>
device_error machine::launch(const Body& body) {
  device::launch_shape shape = body.shape();
  if (shape.shared_words * sizeof(float) > shared_bytes_max || shape.y > 65535)
    return invalid_value;
  static_assert(Body::threads <= 1024);
  if (later_ == nullptr) return run(body);
  later_->push_back([this, body] { return run(body); });
  return 0;
}

template <class Body>
device_error machine::run(const Body& body) {
  device::launch_shape shape = body.shape();
  for (uint32_t at : turns_of(shape.x * shape.y)) {
    bool ran = run_block(Body::threads, shape.shared_words, [&](uint32_t thread) {
      block b(*this, {at % shape.x, at / shape.x, thread});
      body(b);
    });
    if (!ran) return launch_failed;
    ran_.insert(typeid(Body));
  }
  return 0;
}

}  // namespace lethe::emulated
