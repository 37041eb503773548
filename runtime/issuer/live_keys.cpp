#include "runtime/issuer/live_keys.hpp"

namespace lethe {

void live_keys::replace(token_issuer keys) {
  auto released = std::make_shared<std::promise<void>>();
  auto before = std::exchange(released_, released->get_future());
  held next(new token_issuer(std::move(keys)), [released](const token_issuer* old) {
    delete old;
    released->set_value();
  });
  {
    std::lock_guard lock(mutex_);
    keys_.swap(next);
  }
  next.reset();
  if (before.valid()) before.wait();
}

}  // namespace lethe
