#include "parallel/rank_store.hpp"

namespace lethe {

result<void> memory_rank_store::set(std::string_view key, bytes_view value) {
  std::lock_guard lock(mutex_);
  if (value.size() > value_bytes_max || values_.size() == values_max)
    return fail("rank store: a value of {} bytes beside {} others is too much; start a new epoch",
                value.size(), values_.size());
  if (!values_.emplace(key, std::vector<std::byte>(value.begin(), value.end())).second)
    return fail("rank store: {} was set before; start a new epoch", key);
  changed_.notify_all();
  return {};
}

result<std::vector<std::byte>> memory_rank_store::get(std::string_view key, deadline until) {
  std::unique_lock lock(mutex_);
  auto there = [this, key] { return values_.find(key) != values_.end(); };
  if (!changed_.wait_until(lock, until, there))
    return fail("rank store: nobody set {} in time; see whether every rank was started", key);
  return values_.find(key)->second;
}

}  // namespace lethe
