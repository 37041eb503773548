#include "actors/cluster/thread_house.hpp"

namespace lethe {

thread_house::~thread_house() {
  for (const auto& [id, engine] : running_) caf::anon_send_exit(engine, caf::exit_reason::kill);
}

result<void> thread_house::start(const wire<schema::StartEngine>& order, uint16_t id,
                                 directory_actor directory, ended then) {
  auto engine =
      sys_.spawn<caf::detached>(run_engine, setup_of(order, opener_, trace_), std::move(directory));
  engine->attach_functor([then = std::move(then)](const caf::error& why) { then(why_ended(why)); });
  std::erase_if(running_, [](const auto& one) {
    return !caf::actor_cast<caf::strong_actor_ptr>(one.second);
  });
  running_[id] = engine.address();
  return {};
}

result<void> thread_house::start_ranks(const wire<schema::StartRanks>&, uint32_t, uint16_t, ended) {
  return fail("ranks on several hosts are processes; [engines] processes = \"ranks\"");
}

void thread_house::kill(uint16_t id) {
  auto found = running_.find(id);
  if (found == running_.end()) return;
  caf::anon_send_exit(found->second, caf::exit_reason::kill);
  running_.erase(found);
}

}  // namespace lethe
