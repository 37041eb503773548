#pragma once

#include <span>

#include "runtime/grammar/grammar.hpp"

namespace lethe {

/// States of a grammar's match, made when a text first leads to them. A state is the set of all
/// ways to read the text so far, each a node and a stack of nodes to come back to; stacks share
/// their lower parts, and equal states are one. Tables have a fixed size: when they are full, the
/// owner starts new ones with what is still in use.
class lazy_states {
 public:
  using id = uint32_t;
  static constexpr id unknown = 0, dead = 1, no_room = UINT32_MAX;

  lazy_states(const grammar& g, std::pmr::memory_resource* memory);

  /// The grammar's beginning.
  id begin(uint64_t& budget);
  /// The state behind a byte; `dead` when it can't follow. Also `dead` when that opened more than
  /// limits::grammar_stacks_max ways. `budget` is what it may cost, and becomes less.
  id step(id from, uint8_t byte, uint64_t& budget) {
    id known = steps_[size_t{from} * grammar_.classes + grammar_.class_of[byte]];
    return known != unknown ? known : find_step(from, byte, budget);
  }
  bool may_end(id s) const { return states_[s].may_end; }
  bool must_end(id s) const { return states_[s].may_end && states_[s].count == 0; }
  /// So many plain characters surely can follow, and at most so many; run_max: or more.
  uint32_t run(id s) const { return states_[s].run; }
  uint32_t reach(id s) const { return states_[s].reach; }
  size_t ways(id s) const { return states_[s].count; }

  /// The same state in these tables. They keep no other.
  id copy_from(const lazy_states& other, id s);
  void clear();

 private:
  struct frame {
    uint32_t below = 0, node = 0, depth = 0;
  };
  struct way {
    uint32_t node, stack;
    auto operator<=>(const way&) const = default;
  };
  struct state {
    uint32_t first = 0, count = 0;
    bool may_end = false;
    uint8_t run = 0, reach = 0;
  };

  id find_step(id from, uint8_t byte, uint64_t& budget);
  bool open(uint32_t node, uint32_t stack);
  uint32_t push(uint32_t below, uint32_t node);
  id close(uint64_t& budget);
  bool follow(way w, state& into);
  id intern(state made);
  std::span<const way> ways_of(const state& s) const {
    return std::span(ways_).subspan(s.first, s.count);
  }

  const grammar& grammar_;
  std::pmr::vector<frame> frames_;
  std::pmr::vector<uint32_t> frame_slots_;
  std::pmr::vector<way> ways_;
  std::pmr::vector<state> states_;
  std::pmr::vector<uint32_t> state_slots_;
  std::pmr::vector<id> steps_;  // by state and class of byte
  size_t states_max_;
  // While a state is made: ways that were seen, and those that are still to be followed.
  std::pmr::vector<way> seen_;
  std::pmr::vector<uint32_t> seen_slots_, seen_used_;
  bool full_ = false, many_ = false;
};

}  // namespace lethe
