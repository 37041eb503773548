#pragma once

#include <memory_resource>

#include "runtime/base/wipe.hpp"

namespace lethe {

/// The heap, but what is given back is wiped first: growing containers leave nothing behind.
class wiping_memory final : public std::pmr::memory_resource {
 private:
  void* do_allocate(size_t bytes, size_t align) override {
    return std::pmr::new_delete_resource()->allocate(bytes, align);
  }
  void do_deallocate(void* at, size_t bytes, size_t align) override {
    wipe(at, bytes);
    std::pmr::new_delete_resource()->deallocate(at, bytes, align);
  }
  bool do_is_equal(const memory_resource& o) const noexcept override { return this == &o; }
};

}  // namespace lethe
