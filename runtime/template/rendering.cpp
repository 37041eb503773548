#include "runtime/template/rendering.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lethe::jinja {

rendering::rendering(const program& p, std::pmr::memory_resource* upstream, std::time_t time)
    : source(p), now(time), pool_(upstream) {}

void rendering::refuse(std::string why) {
  why_ = line_ ? fmt::format("chat template line {}: {}", line_, why)
               : fmt::format("chat template: {}", why);
}

bool rendering::step(size_t bytes) {
  steps_ += 1 + bytes / limits::template_bytes_per_step;
  if (steps_ > limits::template_steps_max) {
    fail("more than {} steps; the template or its input is too large", limits::template_steps_max);
  }
  return ok();
}

bool rendering::take(size_t bytes) {
  bytes_ = std::min(bytes_ + std::min(bytes, limits::template_values_bytes_max + 1),
                    2 * limits::template_values_bytes_max);
  if (bytes_ > limits::template_values_bytes_max) {
    fail("its values need more than {} bytes", limits::template_values_bytes_max);
  }
  return ok();
}

void rendering::push(sequence& to, const value& v) {
  if (step() && take(2 * sizeof v)) to.items.push_back(v);
}

void rendering::put(dictionary& to, const value& key, const value& held) {
  if (!dictionary::can_key(key)) {
    fail("{} cannot be a dictionary's key", type_name(key));
  } else if (step(key.is_text() ? key.text.size() : 0) && take(5 * sizeof key)) {
    to.put(key, held);
  }
}

std::string_view rendering::keep(std::string_view text) {
  if (text.empty() || !step(text.size()) || !take(text.size())) return {};
  char* at = static_cast<char*>(pool_.allocate(text.size(), 1));
  std::memcpy(at, text.data(), text.size());
  return {at, text.size()};
}

std::string_view rendering::join(std::string_view a, std::string_view b) {
  const size_t size = a.size() + b.size();
  if (size > limits::template_output_bytes_max) {
    fail("a text of more than {} bytes", limits::template_output_bytes_max);
    return {};
  }
  if (a.empty()) return b;
  if (b.empty()) return a;
  const bool extends = tail_ && a.data() + a.size() == tail_ && b.size() <= tail_room_;
  if (!step(extends ? b.size() : size)) return {};
  char* start = const_cast<char*>(a.data());  // ours, and nobody reads behind `a`
  if (!extends) {
    const size_t room = size < 256 ? size : 2 * size;
    if (!take(room)) return {};
    start = static_cast<char*>(pool_.allocate(room, 1));
    std::memcpy(start, a.data(), a.size());
    tail_room_ = room - a.size();
  }
  std::memcpy(start + a.size(), b.data(), b.size());
  tail_ = start + size;
  tail_room_ -= b.size();
  return {start, size};
}

scope* rendering::open_scope(scope* outer) {
  scope* s = nullptr;
  if (spare_.empty()) {
    s = make<scope>(&pool_);
  } else {
    s = spare_.back();
    spare_.pop_back();
  }
  s->outer = outer;
  return s;
}

void rendering::close_scope(scope* s) {
  if (s->captured) return;
  s->held.clear();
  spare_.push_back(s);
}

char* text_sink::grow(size_t bytes) {
  if (bytes > limits::template_output_bytes_max - size_) {
    r_.fail("a text of more than {} bytes", limits::template_output_bytes_max);
    return nullptr;
  }
  if (!r_.step(bytes)) return nullptr;
  if (size_ + bytes > room_) {
    const size_t room = std::max<size_t>(size_ + bytes, std::max<size_t>(64, 2 * room_));
    if (!r_.take(room)) return nullptr;
    char* larger = static_cast<char*>(r_.memory()->allocate(room, 1));
    if (size_) std::memcpy(larger, data_, size_);
    data_ = larger;
    room_ = room;
  }
  return data_ + std::exchange(size_, size_ + bytes);
}

void text_sink::append(std::string_view text) {
  if (text.empty()) return;
  if (char* at = grow(text.size())) std::memcpy(at, text.data(), text.size());
}

void text_sink::append(size_t count, char c) {
  if (count == 0) return;
  if (char* at = grow(count)) std::memset(at, c, count);
}

}  // namespace lethe::jinja
