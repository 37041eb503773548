#include "runtime/grammar/lazy_states.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/check.hpp"
#include "runtime/base/limits.hpp"

namespace lethe {

namespace {

constexpr size_t frames_max = 8192, ways_max = 32768, seen_max = 8192;
constexpr uint32_t bottom = 0;

constexpr uint64_t mix(uint64_t h) { return (h ^ h >> 29) * 0x9E3779B97F4A7C15; }
constexpr size_t slot_of(uint64_t h, size_t slots) { return (h >> 32) & (slots - 1); }

}  // namespace

lazy_states::lazy_states(const grammar& g, std::pmr::memory_resource* memory)
    : grammar_(g),
      frames_(memory),
      frame_slots_(2 * frames_max, 0, memory),
      ways_(memory),
      states_(memory),
      state_slots_(2048, 0, memory),
      steps_(memory),
      states_max_(1024),
      seen_(memory),
      seen_slots_(2 * seen_max, 0, memory),
      seen_used_(memory) {
  frames_.reserve(frames_max);
  ways_.reserve(ways_max);
  states_.reserve(states_max_);
  steps_.resize(states_max_ * g.classes);
  seen_.reserve(seen_max);
  seen_used_.reserve(seen_max);
  clear();
}

void lazy_states::clear() {
  std::ranges::fill(frame_slots_, 0);
  std::ranges::fill(state_slots_, 0);
  std::fill_n(steps_.begin(), states_.size() * grammar_.classes, unknown);
  frames_.assign(1, frame{});
  ways_.clear();
  states_.assign(2, state{});  // `unknown` and `dead`
}

lazy_states::id lazy_states::begin(uint64_t& budget) {
  open(grammar_.start, bottom);
  return close(budget);
}

lazy_states::id lazy_states::find_step(id from, uint8_t byte, uint64_t& budget) {
  size_t at = size_t{from} * grammar_.classes + grammar_.class_of[byte];
  for (way w : ways_of(states_[from])) {
    const auto& n = grammar_.nodes[w.node];
    if (n.low <= byte && byte <= n.high) open(n.next, w.stack);
  }
  id to = close(budget);
  if (to != no_room) steps_[at] = to;
  return to;
}

/// Notes a way to be followed. One that could never end within the allowed depth is none; whatever
/// stays can end, so no answer is led to where nothing follows.
bool lazy_states::open(uint32_t node, uint32_t stack) {
  uint32_t height = grammar_.nodes[node].height;
  if (height == grammar::endless || frames_[stack].depth + height > limits::grammar_depth_max)
    return false;
  uint64_t hash = mix(uint64_t{node} << 32 | stack);
  size_t slot = slot_of(hash, seen_slots_.size());
  for (; seen_slots_[slot] != 0; slot = (slot + 1) & (seen_slots_.size() - 1))
    if (seen_[seen_slots_[slot] - 1] == way{node, stack}) return true;
  if (seen_.size() == seen_max) return many_ = true, false;
  seen_.push_back({node, stack});
  seen_slots_[slot] = uint32_t(seen_.size());
  seen_used_.push_back(uint32_t(slot));
  return true;
}

uint32_t lazy_states::push(uint32_t below, uint32_t node) {
  uint64_t hash = mix(uint64_t{node} << 32 | below);
  size_t slot = slot_of(hash, frame_slots_.size());
  for (; frame_slots_[slot] != 0; slot = (slot + 1) & (frame_slots_.size() - 1)) {
    const frame& f = frames_[frame_slots_[slot]];
    if (f.below == below && f.node == node) return frame_slots_[slot];
  }
  if (frames_.size() == frames_max) return full_ = true, bottom;
  frames_.push_back({below, node, frames_[below].depth + 1});
  frame_slots_[slot] = uint32_t(frames_.size() - 1);
  return frame_slots_[slot];
}

/// One way on: a byte to wait for, or the ways behind it.
bool lazy_states::follow(way w, state& into) {
  const auto& n = grammar_.nodes[w.node];
  switch (n.op) {
    case grammar_op::bytes:
      if (ways_.size() == ways_max) return full_ = true, false;
      if (ways_.size() - into.first == limits::grammar_stacks_max) return many_ = true, false;
      if (!n.begins_character) into.reach = std::max(into.reach, n.reach);
      ways_.push_back(w);
      break;
    case grammar_op::split:
      open(n.next, w.stack);
      open(n.other, w.stack);
      break;
    case grammar_op::call: {
      uint32_t callee = grammar_.nodes[n.other].height;
      bool last = n.next == grammar::end;  // the callee's end is ours
      if (!last && frames_[w.stack].depth + 1 + callee > limits::grammar_depth_max) break;
      into.run = std::max(into.run, n.run);
      if (n.run > 0 && !n.begins_character) into.reach = std::max(into.reach, n.reach);
      uint32_t stack = last ? w.stack : push(w.stack, n.next);
      if (!full_) open(n.other, stack);
      break;
    }
    case grammar_op::ret:
      if (w.stack == bottom)
        into.may_end = true;
      else
        open(frames_[w.stack].node, frames_[w.stack].below);
      break;
  }
  return !full_ && !many_;
}

/// The state of all ways that are open.
lazy_states::id lazy_states::close(uint64_t& budget) {
  state made{.first = uint32_t(ways_.size())};
  bool good = !full_ && !many_;
  for (size_t i = 0; good && i < seen_.size(); ++i) good = follow(seen_[i], made);
  bool out_of_room = full_ || seen_.size() > budget;
  bool too_many = many_;
  budget -= std::min<uint64_t>(budget, seen_.size());
  for (uint32_t slot : seen_used_) seen_slots_[slot] = 0;
  seen_used_.clear();
  seen_.clear();
  full_ = many_ = false;
  made.count = uint32_t(ways_.size()) - made.first;
  bool nothing = too_many || (made.count == 0 && !made.may_end);
  if (!out_of_room && !nothing) return intern(made);
  ways_.resize(made.first);
  return out_of_room ? no_room : dead;
}

lazy_states::id lazy_states::intern(state made) {
  auto ways = std::span(ways_).subspan(made.first, made.count);
  std::ranges::sort(ways);
  uint64_t hash = made.may_end;
  for (way w : ways) hash = mix(hash + (uint64_t{w.node} << 32 | w.stack));
  size_t slot = slot_of(hash, state_slots_.size());
  for (; state_slots_[slot] != 0; slot = (slot + 1) & (state_slots_.size() - 1)) {
    const state& s = states_[state_slots_[slot]];
    if (s.may_end != made.may_end || !std::ranges::equal(ways_of(s), ways)) continue;
    ways_.resize(made.first);
    return state_slots_[slot];
  }
  if (states_.size() == states_max_) return ways_.resize(made.first), no_room;
  states_.push_back(made);
  state_slots_[slot] = uint32_t(states_.size() - 1);
  return state_slots_[slot];
}

lazy_states::id lazy_states::copy_from(const lazy_states& other, id s) {
  if (s <= dead) return s;
  state made = other.states_[s];
  auto from = other.ways_of(made);
  if (ways_.size() + from.size() > ways_max) return no_room;
  made.first = uint32_t(ways_.size());
  uint32_t nodes[limits::grammar_depth_max];
  for (way w : from) {
    uint32_t depth = 0;
    for (uint32_t f = w.stack; f != bottom; f = other.frames_[f].below)
      nodes[depth++] = other.frames_[f].node;
    uint32_t stack = bottom;
    while (depth > 0) stack = push(stack, nodes[--depth]);
    ways_.push_back({w.node, stack});
  }
  if (!std::exchange(full_, false)) return intern(made);
  ways_.resize(made.first);
  return no_room;
}

}  // namespace lethe
