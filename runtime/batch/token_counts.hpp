#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

namespace lethe {

/// How often each token occurs in a request's prompt and output; only ids that occur take memory.
class token_counts {
 public:
  struct entry {
    uint32_t id, prompt, output;
  };

  explicit token_counts(std::pmr::memory_resource* memory) : slots_(memory) {}
  token_counts(token_counts&&) = default;
  token_counts& operator=(token_counts&&) = default;

  /// An equal one that goes its own way, for another choice of the same request.
  token_counts fork(std::pmr::memory_resource* memory) const;

  /// Takes the memory for this many different ids, so that counting them can't fail later.
  void reserve(uint32_t distinct);
  void add_prompt(std::span<const uint32_t> ids);
  void add_output(uint32_t id) { ++at(id).output; }

  /// Zeros for an id that does not occur.
  entry of(uint32_t id) const;
  uint32_t distinct() const { return used_; }

  template <class Each>
  void for_each(Each&& each) const {
    for (const entry& e : slots_) {
      if (occurs(e)) each(e);
    }
  }

 private:
  static bool occurs(const entry& e) { return e.prompt + e.output > 0; }
  entry& at(uint32_t id);
  size_t slot_of(uint32_t id) const;
  void rehash(size_t slots);

  std::pmr::vector<entry> slots_;  // open addressing, a power of two, at most half full
  uint32_t used_ = 0;
};

}  // namespace lethe
