#include "actors/sim/message_turns.hpp"

#include <capnp/schema.h>

#include <algorithm>

#include "actors/cluster/messages.hpp"
#include "actors/sim/mailbox.hpp"

namespace lethe::sim {

namespace {

constexpr message_turns::turn as_it_comes{.due_ns = 0, .element = SIZE_MAX};

actor_kind kind_of(const caf::scheduled_actor& who) {
  for (auto kind : {actor_kind::face, actor_kind::scheduler, actor_kind::engine})
    if (std::string_view(who.name()) == name_of(kind)) return kind;
  return actor_kind::none;
}

template <class Schema>
bool read_as(const caf::type_erased_tuple& m, taken_message& into) {
  if (!m.match_elements<wire<Schema>>()) return false;
  into.request = m.get_as<wire<Schema>>(0).stamp.trace;
  into.type = capnp::typeId<Schema>();
  return true;
}

/// False: it is of no request.
bool read_name(const caf::type_erased_tuple& m, taken_message& into) {
  using namespace schema;
  bool known = read_as<Place>(m, into) || read_as<Placed>(m, into) || read_as<Submit>(m, into) ||
               read_as<Answer>(m, into) || read_as<Cancel>(m, into) || read_as<Release>(m, into) ||
               read_as<Lost>(m, into);
  return known && into.request != 0;
}

}  // namespace

message_turns::message_turns(const replay_schedule& schedule) : schedule_(schedule) {
  std::map<actor, size_t> counts;
  for (size_t i = 0; i < schedule.messages.size(); ++i) {
    const auto& m = schedule.messages[i];
    bool held = m.what.taker == actor_kind::face || m.what.taker == actor_kind::scheduler ||
                m.what.taker == actor_kind::engine;
    // Pieces may be fewer than recorded; nobody waits for one.
    bool counts_in = held && !is_piece(m.what.type);
    position_.push_back(counts_in ? counts[{m.what.taker, m.index}]++ : 0);
    if (held) places_[m.what] = i;
  }
}

/// Its taker has not had all that it took before, by the record.
bool message_turns::misses_one(size_t place) const {
  const auto& m = schedule_.messages[place];
  auto reached = reached_.find({m.what.taker, m.index});
  return position_[place] > (reached == reached_.end() ? 0 : reached->second);
}

message_turns::turn message_turns::of_job(caf::scheduled_actor& who) const {
  auto kind = kind_of(who);
  bool urgent = !urgent_letters(who).empty();
  if (who.peek_at_next_mailbox_element() == nullptr || urgent || kind == actor_kind::none)
    return as_it_comes;
  turn best;
  std::map<taken_message, bool> seen;  // of each kind the first is the next
  auto waiting = take_out(normal_letters(who));
  for (size_t i = 0; i < waiting.size(); ++i) {
    turn here{.due_ns = 0, .element = i};
    taken_message name{.taker = kind};
    if (read_name(waiting[i]->content(), name)) {
      if (std::exchange(seen[name], true)) continue;
      auto count = taken_.find(name);
      name.number = count == taken_.end() ? 0 : count->second;
      if (auto known = places_.find(name); known != places_.end()) {
        here.place = known->second;
        here.due_ns = due_ns(schedule_.messages[here.place].at_ns);
      }
    }
    if (std::pair(here.due_ns, here.place) < std::pair(best.due_ns, best.place)) best = here;
  }
  put_back(normal_letters(who), std::move(waiting));
  return best;
}

message_turns::turn message_turns::earliest(jobs& all) const {
  turn best;
  for (size_t i = 0; i < all.size(); ++i) {
    auto* who = dynamic_cast<caf::scheduled_actor*>(all[i]);
    turn one = who ? of_job(*who) : as_it_comes;
    one.job = i;
    if (std::pair(one.due_ns, one.place) < std::pair(best.due_ns, best.place)) best = one;
  }
  return best;
}

message_turns::turn message_turns::choose(jobs& all, uint64_t now_ns) {
  turn best = earliest(all);
  if (best.place == SIZE_MAX || best.due_ns > now_ns) return best;
  bool misses = misses_one(best.place);
  if (misses && !waits_since_ns_) waits_since_ns_ = now_ns;
  if (misses && now_ns < *waits_since_ns_ + patience_ns) {
    best.due_ns = *waits_since_ns_ + patience_ns;
    return best;
  }
  if (waits_since_ns_) begin_ns_ += now_ns - *waits_since_ns_;
  waits_since_ns_.reset();
  return best;
}

void message_turns::take(jobs& all, const turn& which) {
  std::rotate(all.begin(), all.begin() + ptrdiff_t(which.job), all.end());
  if (which.element == SIZE_MAX) return;
  auto* who = dynamic_cast<caf::scheduled_actor*>(all.front());
  auto waiting = take_out(normal_letters(*who));
  auto chosen = waiting.begin() + ptrdiff_t(which.element);
  std::rotate(waiting.begin(), chosen, chosen + 1);
  taken_message name{.taker = kind_of(*who)};
  if (read_name(waiting.front()->content(), name)) ++taken_[name];
  put_back(normal_letters(*who), std::move(waiting));
  if (which.place == SIZE_MAX || is_piece(schedule_.messages[which.place].what.type)) return;
  const auto& m = schedule_.messages[which.place];
  auto& reached = reached_[{m.what.taker, m.index}];
  reached = std::max(reached, position_[which.place] + 1);
}

}  // namespace lethe::sim
