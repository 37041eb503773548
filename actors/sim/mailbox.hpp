#pragma once

#include <caf/all.hpp>
#include <deque>

/// An actor's waiting messages, for whoever decides in place of a network which come, and when.
namespace lethe::sim {

using letters = std::deque<caf::mailbox_element_ptr>;

inline auto& normal_letters(caf::scheduled_actor& who) {
  return std::get<caf::scheduled_actor::normal_queue_index>(who.mailbox().queue().queues());
}
inline auto& urgent_letters(caf::scheduled_actor& who) {
  return std::get<caf::scheduled_actor::urgent_queue_index>(who.mailbox().queue().queues());
}

/// CAF's own iteration takes the list's end for an element, which the sanitizers rightly refuse.
template <class Queue>
letters take_out(Queue& queue) {
  letters all;
  while (auto next = queue.take_front()) all.push_back(std::move(next));
  return all;
}

template <class Queue>
void put_back(Queue& queue, letters all) {
  for (auto& one : all) queue.push_back(one.release());
}

}  // namespace lethe::sim
