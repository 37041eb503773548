#include "parallel/team.hpp"

#include <system_error>

#include "parallel/step_stack.hpp"

namespace lethe {

result<std::unique_ptr<team>> team::start(uint32_t threads, bool spin) {
  check(threads > 0);
  std::unique_ptr<team> t(new team(threads, spin));
  try {
    for (uint32_t i = 1; i < threads; ++i)
      t->others_.emplace_back([self = t.get(), i] { self->serve(i); });
  } catch (const std::system_error& e) {
    return fail("shard: cannot start {} threads: {}; use fewer, or raise ulimit -u", threads,
                e.what());
  }
  return t;
}

team::~team() {
  go_.abort();
  for (std::thread& other : others_) other.join();
}

void team::serve(uint32_t thread) {
  clean_stack of_steps(step_stack_bytes);
  uint32_t seen = 0;
  while (go_.wait_past(seen, spin_)) {
    seen = go_.count();  // the lead cannot go on before this thread has met the others
    work_(context_, thread);
    meet();
  }
}

}  // namespace lethe
